"""`tarsy bench incidents`: the real engine and the real Kubernetes tools over incidents; only the model is a script."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tarsy.cli.evals.run import Output, Overrides
from tarsy_dev.incidents.bench import Bench, WrongInput, bench_incidents, find_incidents
from tarsy_dev.incidents.corpus import FOLDER
from tarsy_dev.model import ScriptedModel, parse_script

LIBRARY = FOLDER.parents[1] / "manifests/library"
PROVIDER = """
apiVersion: tarsy.dev/v1alpha1
kind: LLMProvider
metadata: {{name: mine}}
spec: {{type: openai, model: scripted, baseURL: "{url}", rates: {{inputPerMillion: 1, outputPerMillion: 2}}}}
"""
SCRIPT = """
agents:
  triage-agent: &agent
    - calls: [{name: kubernetes.list_resources, arguments: {kind: KIND, namespace: shop}}]
    - text: &text |
        ```finding
        {"summary": "SUMMARY", "confidence": "High", "claims": [{"text": "CLAIM", "citations": [
          {"callId": "@callId(kubernetes.list_resources)", "quote": "QUOTE"}]}]}
        ```
  kubernetes-agent: *agent
  log-analyst: *agent
  change-analyst: *agent
  synthesis-agent: [{text: *text}]
  executive-summary: [{text: "It is the policy."}]
"""


def script(kind: str, claim: str, quote: str, summary: str = "Something is wrong.") -> str:
    """Returns a script whose agents list the objects of a kind, and claim something with a quote of it."""
    text = SCRIPT
    for word, value in {"KIND": kind, "CLAIM": claim, "QUOTE": quote, "SUMMARY": summary}.items():
        text = text.replace(word, value)
    return text


RIGHT = script("NetworkPolicy", "NetworkPolicy/default-deny-egress denies egress.", "default-deny-egress")
WRONG = script("Deployment", "Deployment/billing has no ready replica.", "billing ready=0/2")
WELL = script("Deployment", "Deployment/campaigns is there.", "campaigns", "Nothing is wrong: campaigns rests.")
AS_IT_IS = Overrides()
Measure = Callable[..., Awaitable[int]]


def corpus(folder: Path, *names: str) -> Path:
    """Returns a corpus of some incidents."""
    (folder / "cases").mkdir(parents=True)
    (folder / "noise").symlink_to(FOLDER / "noise")
    for name in names:
        (folder / f"cases/{name}.yaml").symlink_to(FOLDER / f"cases/{name}.yaml")
    return folder


@pytest.fixture
async def measure(tmp_path: Path) -> AsyncIterator[Measure]:
    """Measures incidents with a script."""
    models: list[ScriptedModel] = []

    async def start(said: str, *names: str, overrides: Overrides = AS_IT_IS, chain: str = "quick") -> int:
        model = ScriptedModel(parse_script(said))
        models.append(model)
        (tmp_path / "provider.yaml").write_text(PROVIDER.format(url=await model.start()))
        bench = Bench(corpus(tmp_path / "corpus", *names), tmp_path / "provider.yaml", LIBRARY, chain)
        outputs = [Output("json", tmp_path / "out.json"), Output("junit", tmp_path / "out.xml")]
        return await bench_incidents(bench, overrides, outputs)

    yield start
    for model in models:
        await model.stop()


def _result(folder: Path) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    found = json.loads((folder / "out.json").read_text())
    return found["totals"], {case["name"]: case["samples"][0] for case in found["cases"] if case["samples"]}


async def test_a_finding_that_blames_the_cause_is_right_with_the_chain_of_the_library(
    measure: Measure, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await measure(RIGHT, "network-policy", chain="kubernetes") == 0
    totals, samples = _result(tmp_path)
    assert samples["network-policy"]["outcome"] == "Passed", samples
    assert (totals["citations"], totals["held"], totals["confidentWrong"]) == (1, 1, 0), totals
    row = capsys.readouterr().out.splitlines()[2].split()
    assert row[:4] == ["network-policy", "cause", "Passed", "wrong"], row


async def test_a_sure_finding_that_blames_something_else_is_confidently_wrong(
    measure: Measure, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert await measure(WRONG, "network-policy") == 0
    totals, samples = _result(tmp_path)
    assert samples["network-policy"]["outcome"] == "Failed"
    assert totals["confidentWrong"] == 1, samples
    row = capsys.readouterr().out.splitlines()[2]
    assert "Failed, confidently" in row
    assert "No supported claim blames NetworkPolicy/default-deny-egress." in row


async def test_without_a_fault_the_finding_must_say_so(measure: Measure, tmp_path: Path) -> None:
    assert await measure(WELL, "scaled-down-on-purpose") == 0
    assert _result(tmp_path)[1]["scaled-down-on-purpose"]["outcome"] == "Passed", _result(tmp_path)


async def test_an_incident_that_a_certain_rule_ends_is_marked_as_one_without_a_model(
    measure: Measure, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await measure(RIGHT, "pvc-class") == 0
    assert _result(tmp_path)[1]["pvc-class"]["modelCalls"] == 0
    assert "No model was asked." in capsys.readouterr().out


async def test_no_incident_begins_after_the_budget_is_reached_and_junit_counts_it_as_skipped(
    measure: Measure, tmp_path: Path
) -> None:
    names = ("network-policy", "scaled-down-on-purpose")
    assert await measure(RIGHT, *names, overrides=Overrides(parallelism=1, tokens=1)) == 0
    assert list(_result(tmp_path)[1]) == ["network-policy"]
    suite = ElementTree.fromstring((tmp_path / "out.xml").read_text()).find("testsuite")
    assert suite is not None
    assert {test.get("name"): test.find("skipped") is not None for test in suite.findall("testcase")} == {
        "network-policy": False,
        "scaled-down-on-purpose": True,
        "verdict": False,
    }


def test_a_limit_takes_incidents_evenly_and_at_most_all(tmp_path: Path) -> None:
    folder = corpus(tmp_path, "certificate", "network-policy", "quota", "target-port")
    assert [one.name for one in find_incidents(folder, 2)] == ["certificate", "quota"]
    assert len(find_incidents(folder, 4)) == len(find_incidents(folder, 5)) == len(find_incidents(folder)) == 4


def test_a_folder_without_incidents_and_a_broken_one_are_told(tmp_path: Path) -> None:
    with pytest.raises(WrongInput, match="give the folder tests/incidents of a checkout"):
        find_incidents(tmp_path)
    (tmp_path / "cases").mkdir()
    (tmp_path / "cases/one.yaml").write_text("name: one\n")
    with pytest.raises(WrongInput, match=r"one\.yaml: is no incident"):
        find_incidents(tmp_path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has 0 objects of kind LLMProvider"),
        (PROVIDER.format(url="http://127.0.0.1:9/v1").replace("model: scripted,", "modell: x,"), "modell"),
        (
            PROVIDER.format(url="http://127.0.0.1:9/v1").replace("scripted,", "x, apiKeySecretRef: {name: k, key: k},"),
            "Secret k",
        ),
    ],
)
async def test_a_provider_that_cannot_be_used_is_told_before_a_model_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, text: str, said: str
) -> None:
    monkeypatch.delenv("TARSY_MODEL_API_KEY", raising=False)
    (tmp_path / "provider.yaml").write_text(text)
    bench = Bench(corpus(tmp_path / "corpus", "quota"), tmp_path / "provider.yaml", LIBRARY, "quick")
    assert await bench_incidents(bench, AS_IT_IS) == 2
    assert said in capsys.readouterr().err


async def test_an_unknown_chain_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "provider.yaml").write_text(PROVIDER.format(url="http://127.0.0.1:9/v1"))
    bench = Bench(corpus(tmp_path / "corpus", "quota"), tmp_path / "provider.yaml", LIBRARY, "nosuch")
    assert await bench_incidents(bench, AS_IT_IS) == 2
    assert "nosuch" in capsys.readouterr().err


@pytest.mark.heavy("a process of its own; the same sentence in this process is beside it")
async def test_the_command_tells_where_the_incidents_should_be(tmp_path: Path) -> None:
    (tmp_path / "provider.yaml").write_text(PROVIDER.format(url="http://127.0.0.1:9/v1"))
    command = [sys.executable, "-m", "tarsy.cli", "bench", "incidents", str(tmp_path), "--provider"]
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}

    def run() -> subprocess.CompletedProcess[str]:
        given = [*command, str(tmp_path / "provider.yaml")]
        return subprocess.run(given, env=env, capture_output=True, text=True, timeout=120, check=False)

    ended = await asyncio.to_thread(run)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "give the folder tests/incidents of a checkout" in ended.stderr
