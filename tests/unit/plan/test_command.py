"""`tarsy plan`: the plan of files, and everything that is wrong with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml
from typer.testing import CliRunner, Result

from goldens import check
from tarsy.cli.main import app
from tarsy.plan.model import Plan

ROOT = Path(__file__).parents[3]
LIBRARY = ROOT / "manifests" / "library"
MODEL = ROOT / "manifests" / "samples" / "fill-in" / "llmprovider-local.yaml"
ALERT = ROOT / "manifests" / "samples" / "demo" / "alert-kubepodcrashlooping.yaml"
GOLDEN = Path(__file__).parent / "goldens" / "library.txt"

API = "tarsy.dev/v1alpha1"


def obj(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name}, "spec": spec}


def world() -> list[dict[str, Any]]:
    return [
        obj("LLMProvider", "model", {"type": "openai", "model": "m"}),
        obj("Agent", "triage", {"strategy": "react"}),
        obj(
            "Chain",
            "pods",
            {
                "alertTypes": ["PodCrash"],
                "llmProvider": "model",
                "stages": [{"name": "look", "agents": [{"name": "triage"}]}],
            },
        ),
    ]


def alert(**spec: Any) -> dict[str, Any]:
    return obj("Alert", "a1", {"alertType": "PodCrash", "data": "it crashed", **spec})


def write(path: Path, *objects: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump_all(objects), encoding="utf-8")
    return path


def plan(*files: Path, alert: Path | None = None, rest: tuple[str, ...] = ()) -> Result:
    named = [part for file in files for part in ("-f", str(file))]
    asked = ["--alert", str(alert)] if alert else []
    return CliRunner().invoke(app, ["plan", *named, *asked, *rest], catch_exceptions=False)


def lines(text: str) -> str:
    """Without what only fills a line up to its width."""
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


def test_the_shipped_library_plans_the_sample_alert_as_the_golden_file_says(request: pytest.FixtureRequest) -> None:
    result = plan(LIBRARY, MODEL, alert=ALERT)
    assert (result.exit_code, result.stderr) == (0, "")
    check(GOLDEN, lines(result.stdout), request)


def test_what_the_library_lacks_is_told_by_file_object_and_field() -> None:
    result = plan(LIBRARY, alert=ALERT)
    assert (result.exit_code, result.stdout) == (1, "")
    told = result.stderr.splitlines()
    assert told[0].endswith(
        "library/chain.yaml: Chain tarsy-library/kubernetes: spec.llmProvider: there is no LLMProvider default in "
        "namespace tarsy-library; create it, or name another"
    )
    assert all(": spec.llmProvider: there is no LLMProvider default in " in line for line in told)


@pytest.mark.parametrize("form", ["yaml", "json"])
def test_programs_get_the_plan_its_hash_and_where_it_comes_from(tmp_path: Path, form: str) -> None:
    result = plan(write(tmp_path / "w.yaml", *world()), alert=write(tmp_path / "a.yaml", alert()), rest=("-o", form))
    document = orjson.loads(result.stdout) if form == "json" else yaml.safe_load(result.stdout)
    found = Plan.model_validate(document["plan"])
    assert found.digest == document["planHash"]
    assert found.stages[0].agents[0].strategy == "react"
    assert document["origins"]["stages[0].agents[0].strategy"] == {
        "kind": "Agent",
        "namespace": "default",
        "name": "triage",
        "field": "spec.strategy",
    }


def test_every_error_of_every_file_comes_at_once(tmp_path: Path) -> None:
    provider, agent, chain = world()
    provider["spec"]["modle"] = "m"
    chain["spec"] |= {"llmProvider": "nowhere", "stagez": []}
    other = obj("Chain", "other", {"stages": [{"name": "s", "agents": [{"name": "ghost"}]}]})
    folder = tmp_path / "world"
    write(folder / "deep" / "provider.yml", provider)
    write(folder / "rest.yaml", agent, chain, other)
    (folder / "broken.yaml").write_text("a: [1\n", encoding="utf-8")
    (folder / "twice.yaml").write_text("kind: Agent\nkind: Agent\n", encoding="utf-8")
    result = plan(folder, tmp_path / "gone", alert=write(tmp_path / "a.yaml", alert(severity="high")))
    assert (result.exit_code, result.stdout) == (1, "")
    told = [line.removeprefix(f"{tmp_path}/") for line in result.stderr.splitlines()]
    assert [line.split(": ")[:3] for line in told] == [
        ["gone", "there is no such file or directory; name another"],
        ["world/broken.yaml", "line 2", "is not YAML that Kubernetes accepts"],
        ["world/deep/provider.yml", "LLMProvider default/model", "spec.modle"],
        ["world/rest.yaml", "Chain default/pods", "spec.stagez"],
        ["world/twice.yaml", "line 2", "is not YAML that Kubernetes accepts"],
        ["a.yaml", "Alert default/a1", "spec.severity"],
        ["world/rest.yaml", "Chain default/pods", "spec.llmProvider"],
        ["world/rest.yaml", "Chain default/other", "spec.stages[0].agents[0].name"],
    ]


def test_references_of_an_object_are_followed_although_its_schema_is_broken(tmp_path: Path) -> None:
    provider, agent, chain = world()
    chain["spec"]["stages"] = [
        {"name": "look", "agents": [{"name": "ghost", "strategy": "guess"}, {"llmProvider": "nowhere"}, {"name": 5}]},
        {"agents": [{"name": "gone"}], "maxIterations": "many"},
    ]
    result = plan(write(tmp_path / "w.yaml", provider, agent, chain))
    assert result.exit_code == 1
    told = [line.split(": ")[2] for line in result.stderr.splitlines()]
    schema = ["[0].agents[0].strategy", "[0].agents[1].name", "[0].agents[2].name", "[1].name", "[1].maxIterations"]
    references = ["[0].agents[0].name", "[0].agents[1].llmProvider", "[1].agents[0].name"]
    assert sorted(told) == sorted(f"spec.stages{at}" for at in (*schema, *references))


def test_without_an_alert_every_chain_is_planned_for_every_alert_type(tmp_path: Path) -> None:
    provider, agent, chain = world()
    chain["spec"]["alertTypes"] = ["PodCrash", "PodPending"]
    by_name = obj("Chain", "by-name", {"llmProvider": "model", "stages": chain["spec"]["stages"]})
    good = write(tmp_path / "w.yaml", provider, agent, chain, by_name)
    result = plan(good)
    assert (result.exit_code, result.stderr) == (0, "")
    told = [line.split() for line in result.stdout.splitlines()]
    assert told[0] == ["CHAIN", "RUNS", "IN", "ALERT", "TYPE", "STAGES", "AGENTS"]
    assert ["default/pods", "default", "PodCrash", "1", "1"] in told
    assert ["default/pods", "default", "PodPending", "1", "1"] in told
    assert any(line[:2] == ["default/by-name", "default"] and "chainRef" in line for line in told)

    document = orjson.loads(plan(good, rest=("-o", "json")).stdout)
    assert [(one["chain"], one["alertType"]) for one in document["plans"]] == [
        ("default/by-name", None),
        ("default/pods", "PodCrash"),
        ("default/pods", "PodPending"),
    ]


def test_without_an_alert_what_only_a_whole_plan_shows_is_told_too(tmp_path: Path) -> None:
    provider, agent, chain = world()
    del chain["spec"]["llmProvider"]
    lonely = obj("Agent", "lonely", {"mcpServers": [{"name": "nothing"}]})
    waits = obj("AlertRoute", "route", {"chainRef": {"name": "absent"}, "alertType": "X"})
    result = plan(write(tmp_path / "w.yaml", provider, agent, chain, lonely, waits))
    assert result.exit_code == 1
    assert "llmProvider" in result.stderr and "Agent default/lonely: spec.mcpServers[0].name" in result.stderr
    assert "AlertRoute default/route: spec.chainRef.name: there is no Chain absent" in result.stderr
    assert "default/pods" not in result.stdout


def test_a_library_chain_is_planned_for_each_namespace_that_has_defaults(tmp_path: Path) -> None:
    provider, agent, chain = world()
    for shared in (provider, agent, chain):
        shared["metadata"]["namespace"] = "library"
    chain["spec"]["allowedNamespaces"] = {"from": "Selector", "selector": {"matchLabels": {"team": "a"}}}
    defaults = [obj("InvestigationDefaults", "default", {"llmProvider": "none"}) for _ in "ab"]
    for one, namespace in zip(defaults, ("team-a", "team-b"), strict=True):
        one["metadata"]["namespace"] = namespace
    label = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a", "labels": {"team": "a"}}}
    files = write(tmp_path / "w.yaml", provider, agent, chain, label, *defaults)
    result = plan(files, rest=("--library-namespace", "library"))
    told = [line.split()[:2] for line in result.stdout.splitlines()]
    assert ["library/pods", "library"] in told and ["library/pods", "team-b"] not in told
    assert result.exit_code == 1, "there is no LLMProvider none in team-a"


def test_files_without_an_object_of_ours_are_a_mistake(tmp_path: Path) -> None:
    result = plan(write(tmp_path / "w.yaml", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}))
    assert (result.exit_code, result.stdout) == (1, "")
    assert "hold no object of tarsy.dev" in result.stderr


def test_an_object_that_is_broken_is_not_also_said_to_be_missing(tmp_path: Path) -> None:
    provider, agent, chain = world()
    agent["spec"]["maxIterations"] = 0
    result = plan(write(tmp_path / "w.yaml", provider, agent, chain), alert=write(tmp_path / "a.yaml", alert()))
    assert [line.split(": ")[1:3] for line in result.stderr.splitlines()] == [
        ["Agent default/triage", "spec.maxIterations"]
    ]


def test_an_object_that_is_there_twice_is_told_with_both_files(tmp_path: Path) -> None:
    first, second = write(tmp_path / "w.yaml", *world()), write(tmp_path / "x.yaml", world()[1])
    result = plan(first, first, second, alert=write(tmp_path / "a.yaml", alert()))
    assert result.stderr == f"{second}: Agent default/triage: is in {first} too; keep one of them\n"
    assert result.exit_code == 1
    assert "stage look" in result.stdout


def test_lists_namespaces_and_other_kinds_are_read_as_kubectl_reads_them(tmp_path: Path) -> None:
    provider, agent, chain = world()
    for shared in (provider, agent, chain):
        shared["metadata"]["namespace"] = "library"
    selector = {"matchLabels": {"team": "a"}}
    chain["spec"]["allowedNamespaces"] = {"from": "Selector", "selector": selector}
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"}, "spec": {}}
    foreign = {"apiVersion": "agent.example.com/v1", "kind": "Agent", "metadata": {"name": "triage"}}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a", "labels": {"team": "a"}}}
    everything = {"apiVersion": "v1", "kind": "List", "items": [provider, agent, chain, deployment, foreign]}
    world_file = write(tmp_path / "w.yaml", everything, namespace)
    asked = write(tmp_path / "a.yaml", alert())
    names = ("-n", "team-a", "--library-namespace", "library")
    assert plan(world_file, alert=asked, rest=names).exit_code == 0
    refused = plan(world_file, alert=asked, rest=("-n", "team-b", "--library-namespace", "library"))
    assert refused.exit_code == 1
    assert "Alert team-b/a1: spec.alertType: Chain library/pods may not be used from namespace team-b" in refused.stderr


def test_an_investigation_brings_its_chain_and_its_budget(tmp_path: Path) -> None:
    spec = {"alert": alert()["spec"] | {"alertType": "Other"}, "chainRef": {"name": "pods"}, "budget": {"tokens": 5}}
    asked = write(tmp_path / "i.yaml", obj("Investigation", "i1", spec))
    result = plan(write(tmp_path / "w.yaml", *world()), alert=asked, rest=("-o", "json"))
    assert orjson.loads(result.stdout)["plan"]["budget"]["tokens"] == 5
    asked = write(tmp_path / "j.yaml", obj("Investigation", "i1", {"alertRef": {"name": "a1"}}))
    result = plan(write(tmp_path / "w.yaml", *world()), alert=asked)
    assert "Investigation default/i1: spec.alertRef.name: there is no Alert a1 in the files; add it" in result.stderr
    assert plan(write(tmp_path / "w.yaml", *world(), alert()), alert=asked).exit_code == 0


def test_a_file_without_one_alert_is_told(tmp_path: Path) -> None:
    world_file = write(tmp_path / "w.yaml", *world())
    second = alert() | {"metadata": {"name": "a2"}}
    for objects, count in (((), 0), ((alert(), second), 2)):
        file = write(tmp_path / f"{count}.yaml", *objects)
        result = plan(world_file, alert=file)
        assert result.stderr == f"{file}: holds {count} Alerts or Investigations to plan for; name a file with one\n"
        assert result.exit_code == 1


def test_who_summarizes_long_results_is_shown_with_the_field_that_says_so(tmp_path: Path) -> None:
    provider, agent, chain = world()
    server = obj("MCPServer", "kube", {"transport": {"type": "http", "http": {"url": "https://kube.example/mcp"}}})
    server["spec"]["tools"] = {"readOnly": ["*"]}
    agent["spec"]["mcpServers"] = [{"name": "kube"}]
    chain["spec"]["summarization"] = {"llmProvider": provider["metadata"]["name"]}
    result = plan(write(tmp_path / "w.yaml", provider, agent, chain, server), alert=write(tmp_path / "a.yaml", alert()))
    found = [line for line in result.stdout.splitlines() if "summarizer" in line]
    assert len(found) == 2, "the agent of the stage, and the chat, which has its tools"
    for line in found:
        assert f"/{provider['metadata']['name']} (" in line and line.rstrip().endswith("spec.summarization.llmProvider")
