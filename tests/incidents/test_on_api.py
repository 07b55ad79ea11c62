"""Incidents read by HTTP, by the product's reader and by a real tool server; `python -m tests.bench incidents`: all."""

from pathlib import Path

import pytest

from for_each import for_each
from incidents.on_api import read, serve, tool_answers, tool_calls
from incidents.record import ANSWERS, record, recorded
from tarsy.kube.client import KubeClient
from tarsy_dev.incidents.corpus import FOLDER, READ_AT, load_incident
from tarsy_dev.incidents.rules import measure

NAMES = sorted(path.stem for path in (FOLDER / "cases").glob("*.yaml"))


@pytest.mark.parametrize("name", ["certificate", "drain-blocked", "rollout-in-progress"])
async def test_what_is_read_by_http_gives_the_same_ranking_and_signals(name: str) -> None:
    incident = load_incident(FOLDER / "cases" / f"{name}.yaml")
    with serve(incident) as api:
        async with await KubeClient.load(api.kubeconfig) as client:
            found = measure(incident, await read(client, incident.namespace, READ_AT))
    expected = measure(incident)
    assert found.ranked == expected.ranked
    assert found.signals == expected.signals


@for_each("name", NAMES)
def test_every_incident_has_recorded_answers_of_its_first_calls(name: str) -> None:
    answers = recorded(name)
    assert [(one.tool, one.arguments) for one in answers] == list(tool_calls(load_incident(_path(name))))
    assert not [one.text for one in answers if one.is_error or not one.text]


def test_there_are_no_answers_of_an_incident_that_is_not_there() -> None:
    assert sorted(path.stem for path in ANSWERS.glob("*.json")) == NAMES


@pytest.mark.parametrize("name", ["image-tag-missing", "drain-completed"])
async def test_a_tool_server_shows_what_is_recorded(name: str, kubernetes_mcp_server: Path) -> None:
    now, before = await record(name), recorded(name)
    assert [one.text for one in now[1:]] == [one.text for one in before[1:]]
    pods, pods_before = ([line.split()[:5] for line in answers[0].text.splitlines()] for answers in (now, before))
    assert pods == pods_before


async def test_an_incident_of_the_past_is_not_recorded() -> None:
    incident = load_incident(_path("quota"))
    with pytest.raises(ValueError, match="load it with read_at=now"):
        await tool_answers(None, incident)  # type: ignore[arg-type]


def _path(name: str) -> Path:
    return FOLDER / "cases" / f"{name}.yaml"
