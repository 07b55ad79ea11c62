"""`tarsy eval run`: the real engine and the real SDK over cassettes in one process; only the model is scripted."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

import pytest

from goldens import check
from tarsy.cli.evals.plans import Configuration
from tarsy.cli.evals.run import Output, Overrides, measure_folder
from tarsy.evals.cassette import (
    AlertRecord,
    Cassette,
    Header,
    RecordedCall,
    ServerRecord,
    ToolRecord,
    Truth,
    write_cassette,
)
from tarsy.record.integrity import Integrity
from tarsy.record.messages import Access
from tarsy_dev.model import ScriptedModel, parse_script

MANIFESTS = """
apiVersion: tarsy.dev/v1alpha1
kind: Chain
metadata: {{name: pods, namespace: default}}
spec:
  alertTypes: [PodCrash]
  stages: [{{name: look, agents: [{{name: looker}}]}}]
---
apiVersion: tarsy.dev/v1alpha1
kind: Agent
metadata: {{name: looker, namespace: default}}
spec: {{instructions: "Look. {said}", mcpServers: [{{name: kubernetes}}], maxIterations: 4}}
---
apiVersion: tarsy.dev/v1alpha1
kind: MCPServer
metadata: {{name: kubernetes, namespace: default}}
spec:
  transport: {{type: http, http: {{url: "http://127.0.0.1:9/mcp"}}}}
  tools: {{readOnly: [get_logs]}}
---
apiVersion: tarsy.dev/v1alpha1
kind: LLMProvider
metadata: {{name: default, namespace: default}}
spec: {{type: openai, model: scripted, baseURL: "{url}", rates: {{inputPerMillion: 1, outputPerMillion: 2}}}}
---
apiVersion: tarsy.dev/v1alpha1
kind: InvestigationDefaults
metadata: {{name: default, namespace: default}}
spec: {{llmProvider: default, executiveSummary: {{enabled: false}}}}
"""
SCRIPT = """
agents:
  looker:
    - calls: [{{name: kubernetes.get_logs, arguments: {{pod: checkout-1, namespace: shop}}}}]
    - text: |
        ```finding
        {{"summary": "{summary}", "confidence": "{confidence}", "claims": [
          {{"text": "{claim}", "citations": [
            {{"callId": "@callId(kubernetes.get_logs)", "quote": "PAYMENT_API_URL is not set"}}]}}]}}
        ```
"""
RIGHT = SCRIPT.format(
    summary="checkout lacks a variable.", confidence="High", claim="Deployment/checkout lacks PAYMENT_API_URL."
)
WRONG = SCRIPT.format(summary="The pod is at fault.", confidence="High", claim="Pod/checkout-1 crashes by itself.")


TRUTH = Truth(entities=("Deployment/checkout",))
AS_THE_SUITE_SAYS = Overrides()


def cassette(truth: Truth | None = TRUTH) -> Cassette:
    tool = ToolRecord(
        name="get_logs",
        description="Shows a log.",
        parameters_schema={
            "type": "object",
            "properties": {"pod": {"type": "string"}, "namespace": {"type": "string"}},
        },
        access=Access.READ_ONLY,
    )
    header = Header(
        alert=AlertRecord(type="PodCrash", data="pod checkout-1 in namespace shop crashes"),
        now=datetime(2026, 3, 10, 18, 30, tzinfo=UTC),
        servers={"kubernetes": ServerRecord(tools=(tool,))},
        truth=truth,
    )
    arguments = {"namespace": "shop", "pod": "checkout-1"}
    log = "configuration error: PAYMENT_API_URL is not set"
    call = RecordedCall(server="kubernetes", tool="get_logs", arguments=arguments, result=log, integrity=Integrity.K)
    return Cassette(header, (call,))


@dataclass(frozen=True)
class Place:
    """A folder with configuration and cases, and how it is measured."""

    folder: Path
    url: str

    @property
    def suite(self) -> Path:
        return self.folder / "cases"

    def case(self, name: str, recorded: Cassette | None = None) -> None:
        self.suite.mkdir(exist_ok=True)
        (self.suite / f"{name}.jsonl.gz").write_bytes(write_cassette(recorded or cassette()))

    def configure(self, text: str = MANIFESTS, said: str = "") -> None:
        (self.folder / "manifests").mkdir(exist_ok=True)
        (self.folder / "manifests/all.yaml").write_text(text.format(url=self.url, said=said))

    def out(self, name: str) -> Path:
        return self.folder / name

    async def measure(self, baseline: str | None = None, overrides: Overrides = AS_THE_SUITE_SAYS) -> int:
        return await measure_folder(
            Configuration([self.folder / "manifests"], "default", "tarsy-library"),
            self.suite,
            baseline=self.out(baseline) if baseline else None,
            overrides=overrides,
            outputs=[Output("json", self.out("out.json")), Output("junit", self.out("out.xml"))],
        )


Serve = Callable[[str], Awaitable[Place]]


@pytest.fixture
async def serve(tmp_path: Path) -> AsyncIterator[Serve]:
    """Plays a script on a port of its own; the folder stays the same."""
    models: list[ScriptedModel] = []

    async def start(script: str) -> Place:
        model = ScriptedModel(parse_script(script))
        models.append(model)
        place = Place(tmp_path, await model.start())
        place.configure()
        return place

    yield start
    for model in models:
        await model.stop()


async def test_a_suite_that_finds_the_cause_passes_and_its_result_is_a_baseline(serve: Serve) -> None:
    place = await serve(RIGHT)
    for name in ("one", "two"):
        place.case(name)
    assert await place.measure() == 0
    result = json.loads(place.out("out.json").read_text())
    assert result["format"] == "tarsy.dev/eval-result/v1"
    assert result["verdict"]["verdict"] == "Passed"
    assert [len(case["samples"]) for case in result["cases"]] == [1, 1]
    sample = result["cases"][0]["samples"][0]
    assert (sample["coverage"], sample["modelCalls"], sample["toolCalls"], sample["held"]) == (1.0, 2, 1, 1)
    place.out("out.json").rename(place.out("main.json"))
    assert await place.measure("main.json") == 0


async def test_a_script_that_blames_another_object_regresses(serve: Serve) -> None:
    place = await serve(RIGHT)
    for number in range(6):
        place.case(f"case-{number}")
    assert await place.measure() == 0
    place.out("out.json").rename(place.out("main.json"))
    worse = await serve(WRONG)
    assert await worse.measure("main.json") == 1
    result = json.loads(place.out("out.json").read_text())
    assert len(result["verdict"]["regressed"]) == 6
    assert result["verdict"]["pValue"] < 0.05
    assert result["totals"]["confidentWrong"] == 6


async def test_a_run_that_asks_for_what_is_not_recorded_is_insufficient(serve: Serve) -> None:
    place = await serve(RIGHT.replace("checkout-1", "another"))
    place.case("one")
    assert await place.measure() == 2
    sample = json.loads(place.out("out.json").read_text())["cases"][0]["samples"][0]
    assert (sample["outcome"], sample["coverage"]) == ("Inconclusive", 0.0)


async def test_a_model_that_fails_is_insufficient_and_the_reason_is_told(serve: Serve) -> None:
    place = await serve("agents: {looker: [{error: {status: 401, message: no such key}}]}")
    place.case("one")
    assert await place.measure() == 2
    assert json.loads(place.out("out.json").read_text())["cases"][0]["samples"][0]["failure"]


@pytest.mark.parametrize(("tokens", "run"), [(1, 1), (10_000_000, 3)])
async def test_no_sample_begins_after_the_budget_is_reached(serve: Serve, tokens: int, run: int) -> None:
    place = await serve(RIGHT)
    for number in range(3):
        place.case(f"case-{number}")
    assert await place.measure(overrides=Overrides(parallelism=1, tokens=tokens)) == (0 if run == 3 else 2)
    result = json.loads(place.out("out.json").read_text())
    assert result["totals"]["samples"] == run


async def test_samples_are_counted_for_each_case(serve: Serve) -> None:
    place = await serve(RIGHT)
    place.case("one")
    (place.suite / "suite.yaml").write_text("samples: 3\n")
    assert await place.measure() == 0
    assert len(json.loads(place.out("out.json").read_text())["cases"][0]["samples"]) == 3


JUDGE_SCRIPT = """
  judge:
    - text: |
        {{"answers": [{{"question": "variable", "answer": "yes", "quote": "checkout lacks {noun}"}},
          {{"question": "action", "answer": "no"}}]}}
"""
EXPECTED = "expect: {rootCause: {entities: [Deployment/checkout]}}\n"


def judge_the_suite(place: Place, *questions: str, labels: int = 8, provider: str = "default") -> None:
    """Two questions about the finding, of which the scripted judge answers the first by yes and the second by no."""
    asked = [{"name": name, "question": f"Is there a {name}?"} for name in questions]
    judge = {"llmProviderRef": {"name": provider}, "checklist": asked, "gates": True}
    place.suite.mkdir(exist_ok=True)
    (place.suite / "suite.yaml").write_text(json.dumps({"judge": judge}))
    answers = [{"question": "variable", "answer": "Yes"}, {"question": "action", "answer": "No"}]
    label = {"finding": "It seems that checkout lacks a variable.", "answers": answers}
    for name in ("one", "two"):
        place.case(name)
        (place.suite / f"{name}.yaml").write_text(EXPECTED + f"labels: {json.dumps([label] * labels)}\n")


async def test_a_judge_that_agrees_with_people_decides(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    place = await serve(RIGHT + JUDGE_SCRIPT.format(noun="a variable"))
    judge_the_suite(place, "variable", "action")
    assert await place.measure() == 1  # the judge finds no action
    result = json.loads(place.out("out.json").read_text())
    judge = result["judge"]
    assert (judge["role"], judge["kappa"], judge["answers"], judge["calls"]) == ("Gates", 1.0, 32, 18)
    assert judge["tokens"] > 0 and judge["costComplete"]
    checks = [(one["name"], one["outcome"]) for one in result["cases"][0]["samples"][0]["checks"]]
    assert checks == [("rootCause", "Passed"), ("judge", "Passed"), ("judge", "Failed")]
    assert "The judge decides: its agreement with people is 1.00" in " ".join(capsys.readouterr().out.split())
    place.out("out.json").rename(place.out("main.json"))
    assert await place.measure("main.json") == 1
    assert json.loads(place.out("out.json").read_text())["verdict"]["pValue"] == 1.0  # the cases are compared
    (place.suite / "suite.yaml").unlink()
    for name in ("one", "two"):
        (place.suite / f"{name}.yaml").write_text(EXPECTED)
    assert await place.measure("main.json") == 0
    without = json.loads(place.out("out.json").read_text())
    assert without["judge"] is None
    assert without["verdict"]["pValue"] is None  # results of a judge are not compared with those without


@pytest.mark.parametrize(
    ("script", "labels", "status", "role", "said"),
    [
        (JUDGE_SCRIPT.format(noun="a variable"), 4, 0, "Informs", "16 answers of people, at least 20"),
        (JUDGE_SCRIPT.format(noun="everything"), 8, 0, "Informs", "an agreement of at least 0.70"),
        ("  judge: [{error: {status: 401, message: no such key}}]\n", 8, 2, "Unavailable", "could not be asked"),
    ],
)
async def test_a_judge_without_agreement_decides_nothing(
    serve: Serve, script: str, labels: int, status: int, role: str, said: str
) -> None:
    place = await serve(RIGHT + script)
    judge_the_suite(place, "variable", "action", labels=labels)
    assert await place.measure() == status
    result = json.loads(place.out("out.json").read_text())
    assert result["judge"]["role"] == role
    assert said in result["judge"]["sentence"]


async def test_errors_of_a_judge_are_reported_before_a_model_is_asked(
    serve: Serve, capsys: pytest.CaptureFixture[str]
) -> None:
    place = await serve(RIGHT)
    judge_the_suite(place, "variable", provider="gone")
    assert await place.measure() == 3
    said = capsys.readouterr().err
    assert "judge.llmProviderRef.name: LLMProvider default/gone is in no file" in said
    assert "one.yaml: labels: no question of judge.checklist in suite.yaml is named action" in said


async def test_the_junit_report_counts_what_it_contains(serve: Serve) -> None:
    place = await serve(WRONG)
    place.case("one", replace(cassette(), header=cassette().header.model_copy(update={"runbook": "\x00\ufffe"})))
    assert await place.measure() == 1
    suite = ElementTree.fromstring(place.out("out.xml").read_text()).find("testsuite")
    assert suite is not None
    tests = suite.findall("testcase")
    assert suite.get("tests") == str(len(tests)) == "2"
    assert suite.get("failures") == str(sum(test.find("failure") is not None for test in tests)) == "2"
    assert suite.get("errors") == suite.get("skipped") == "0"
    failure = tests[0].find("failure")
    assert failure is not None
    assert "No supported claim blames Deployment/checkout." in (failure.text or "")


async def test_all_errors_of_configuration_and_suite_are_reported_at_once(
    serve: Serve, capsys: pytest.CaptureFixture[str]
) -> None:
    place = await serve(RIGHT)
    place.configure(MANIFESTS.replace("mcpServers", "mcpServer").replace("llmProvider: default,", "llmProvider: gone,"))
    place.case("no-truth", cassette(None))
    place.case("other-type", Cassette(cassette().header.model_copy(update={"alert": AlertRecord(type="X", data="x")})))
    (place.suite / "broken.jsonl").write_text("{}\n")
    (place.suite / "alone.yaml").write_text("expect: {verdict: NoFault}\n")
    assert await place.measure("missing.json") == 3
    said = capsys.readouterr().err
    for wanted in ("mcpServer", "gone", "no-truth.yaml", "case", "broken.jsonl, line 1", "alone.yaml", "missing.json"):
        assert wanted in said, said
    assert not place.out("out.json").exists()


async def test_a_baseline_of_another_suite_is_an_error(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    place = await serve(RIGHT)
    place.case("one")
    assert await place.measure() == 0
    place.out("out.json").rename(place.out("main.json"))
    other = cassette().header.model_copy(update={"runbook": "another"})
    place.case("one", replace(cassette(), header=other))
    assert await place.measure("main.json") == 3
    assert "is a result of another suite" in capsys.readouterr().err
    place.out("main.json").write_text("[]")
    assert await place.measure("main.json") == 3
    assert "must be 'tarsy.dev/eval-result/v1'" in capsys.readouterr().err


async def test_an_empty_suite_is_insufficient(serve: Serve) -> None:
    place = await serve(RIGHT)
    place.suite.mkdir()
    assert await place.measure() == 2


async def test_a_budget_in_dollars_needs_rates(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    place = await serve(RIGHT)
    place.configure(MANIFESTS.replace(", rates: {{inputPerMillion: 1, outputPerMillion: 2}}", ""))
    place.case("one")
    assert await place.measure(overrides=Overrides(cost_usd=1.0)) == 3
    assert "LLMProvider default: rates" in capsys.readouterr().err


async def test_one_key_is_not_sent_to_two_providers(
    serve: Serve, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TARSY_MODEL_API_KEY", "k-1")
    place = await serve(RIGHT)
    keyed = MANIFESTS.replace("model: scripted,", "model: scripted, apiKeySecretRef: {{name: one, key: key}},")
    provider = keyed[keyed.index("kind: LLMProvider") : keyed.index("---\napiVersion: tarsy.dev/v1alpha1\nkind: Inv")]
    second = provider.replace("name: default,", "name: second,").replace("name: one", "name: two")
    place.configure(
        keyed.replace(
            "alertTypes: [PodCrash]", "alertTypes: [PodCrash]\n  executiveSummary: {{llmProvider: second}}"
        ).replace("executiveSummary: {{enabled: false}}", "strategy: langchain")
        + f"---\napiVersion: tarsy.dev/v1alpha1\n{second}"
    )
    place.case("one")
    assert await place.measure() == 3
    assert "give --api-key one=VARIABLE" in capsys.readouterr().err


async def test_the_command_ends_with_its_status_and_prints_a_golden_table(
    serve: Serve, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    place = await serve(RIGHT)
    place.case("one")
    command = [sys.executable, "-m", "tarsy.cli", "eval", "run", "-f", str(tmp_path / "manifests")]
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}

    def ended(*more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*command, *more], env=env, capture_output=True, text=True, timeout=120, check=False)

    passed = await asyncio.to_thread(ended, "--suite", str(place.suite))
    assert passed.returncode == 0, passed.stderr
    check(Path(__file__).parent / "printed/eval-run.txt", passed.stdout, request)
    assert "1/1 one#1: Passed" in passed.stderr
    assert (await asyncio.to_thread(ended)).returncode == 3
    assert (await asyncio.to_thread(ended, "--suite", "x", "--out", "html")).returncode == 3
