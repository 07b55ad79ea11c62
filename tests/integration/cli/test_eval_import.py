"""`tarsy eval import`: own small cases in each format, hostile files, and the samples of the formats where they are."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tarsy.cli.evals import import_folder
from tarsy.cli.evals.cases import read_suite
from tarsy.cli.evals.importing import import_cases
from tarsy.cli.main import app
from tarsy.evals.imports.formats import FORMATS
from tarsy.evals.matching import Ladder, RecordedAnswer
from tarsy.evals.suite import SuiteCase
from tarsy.record.judging.replay import Rung

SAMPLES = next((found for up in Path(__file__).parents if (found := up / "shared/data").is_dir()), Path("none"))
Write = Callable[[str, object], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def one(path: str, content: object) -> Path:
        file = tmp_path / "given" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content if isinstance(content, str) else json.dumps(content))
        return file

    return one


def imported(tmp_path: Path, name: str, status: int = 0) -> dict[str, SuiteCase]:
    assert import_cases(name, tmp_path / "given", tmp_path / "out") == status
    read = read_suite(tmp_path / "out")
    assert read.problems == []
    return {case.name: case for case in read.suite.cases}


def ask(case: SuiteCase, server: str, tool: str, **arguments: object) -> RecordedAnswer:
    return Ladder(case.cassette).answer(server, tool, json.dumps(arguments))


def opsbench(write: Write, where: str = "boutique/startup/7") -> None:
    write(f"{where}/metadata.json", {
        "namespace": "shop", "query": "The cart does not answer.",
        "result": {"fault_taxonomy": "Startup_Fault", "fault_object": "app/cart", "root_cause": "bad_image"},
    })  # fmt: skip
    write(f"{where}/tool_cache.json", {
        "collection_timestamp": "2026-03-10T18:30:00",
        'GetResources:{"resource_type":"pods","namespace":"shop"}': "NAME    READY\ncart-1   0/1",
        'GetAlerts:{}': [],
        'DescribeResource:{"resource_type":"pods","name":"gone"}': "Error: not found",
    })  # fmt: skip


def test_cloud_opsbench_answers_by_arguments_and_expects_the_faulty_object(tmp_path: Path, write: Write) -> None:
    opsbench(write)
    case = imported(tmp_path, "cloud-opsbench")["boutique-startup-7"]
    assert case.cassette.header.now.isoformat() == "2026-03-10T18:30:00+00:00"
    assert "The cart does not answer." in case.cassette.header.alert.data
    assert case.expectation.root_cause is not None and case.expectation.root_cause.entities == ("cart*",)
    found = ask(case, "cloud-opsbench", "GetResources", namespace="shop", resource_type="pod")
    assert (found.rung, "cart-1" in found.result) == (Rung.NORMALISED, True)
    assert ask(case, "cloud-opsbench", "DescribeResource", resource_type="pods", name="gone").is_error
    assert ask(case, "cloud-opsbench", "GetResources", resource_type="nodes").rung is Rung.MISS


def test_opensre_takes_missing_evidence_from_its_base(tmp_path: Path, write: Write) -> None:
    alert = {"title": "x", "commonLabels": {"alertname": "Crash"}}
    write("000-fine/scenario.yml", "available_evidence: [eks_pods, eks_events]\n")
    write("000-fine/answer.yml", "root_cause_category: healthy\nrequired_keywords: [normal]\n")
    write("000-fine/alert.json", alert)
    write("000-fine/eks_pods.json", {"pods": []})
    write("000-fine/eks_events.json", {"warning_events": ["none"]})
    write(
        "001-oom/scenario.yml", "base: 000-fine\navailable_evidence: [eks_pods, eks_events, eks_pod_logs, tea_leaves]\n"
    )
    write("001-oom/answer.yml", "root_cause_category: memory\nrequired_keywords: [OOM]\n"
                                "required_queries: [list_eks_pods, get_eks_node_health]\n")  # fmt: skip
    write("001-oom/alert.json", alert)
    write("001-oom/eks_pods.json", {"pods": ["killed"]})
    write("001-oom/eks_pod_logs.json", {"pod_name": "a-1", "namespace": "shop", "logs": "killed"})
    cases = imported(tmp_path, "opensre")
    assert cases["000-fine"].expectation.verdict == "NoFault"
    case = cases["001-oom"]
    assert case.expectation.verdict == "Cause" and case.cassette.header.alert.type == "Crash"
    assert case.expectation.tools is not None and case.expectation.tools.required == ("opensre.list_eks_pods",)
    pods = ask(case, "opensre", "list_eks_pods", cluster="any")
    assert (pods.rung, "killed" in pods.result) == (Rung.WILDCARD, True)
    assert "none" in ask(case, "opensre", "get_eks_events").result
    assert ask(case, "opensre", "get_eks_pod_logs", pod_name="a-1", namespace="shop", tail=5).rung is Rung.WILDCARD
    assert ask(case, "opensre", "get_eks_pod_logs", pod_name="b-2", namespace="shop").rung is Rung.MISS
    assert "tea_leaves" in (tmp_path / "out/001-oom.yaml").read_text()


def holmes(write: Write, expected: str = "The `cart` pod cannot reach `db:5432`") -> None:
    write("ask/01_cart/test_case.yaml", f"user_prompt: What is wrong?\nexpected_output: {json.dumps(expected)}\n")
    head = {"toolset_name": "k", "tool_name": "logs", "match_params": {"pod": "cart-1", "limit": "*"}}
    write("ask/01_cart/logs.txt", f"{json.dumps(head)}\n" + '{"status": "success"}\nno route to db:5432\n')
    head = {"tool_name": "get", "match_params": {"kind": "pod"}}
    write("ask/01_cart/get.txt", f"{json.dumps(head)}\n" + '{"status": "error", "error": "forbidden"}\n')
    write("ask/01_cart/notes.txt", "no call\n")


def test_holmesgpt_has_a_file_for_each_call(tmp_path: Path, write: Write) -> None:
    holmes(write)
    case = imported(tmp_path, "holmesgpt")["ask-01-cart"]
    assert len(case.cassette.calls) == 2 and case.cassette.header.alert.data == "What is wrong?"
    assert ask(case, "holmesgpt", "get", kind="pods") == RecordedAnswer(Rung.NORMALISED, "forbidden", True, 2)
    assert ask(case, "holmesgpt", "logs", pod="cart-1", limit=7).result == "no route to db:5432\n"
    assert ask(case, "holmesgpt", "logs", pod="cart-1", limit=7).rung is Rung.WILDCARD
    assert ask(case, "holmesgpt", "logs", pod="cart-2").rung is Rung.MISS
    assert [fact.message for fact in case.expectation.facts] == [
        "The finding does not say: cart", "The finding does not say: db:5432",
    ]  # fmt: skip
    assert "notes.txt" in (tmp_path / "out/ask-01-cart.yaml").read_text()


def test_a_case_that_expects_only_prose_cannot_pass_unseen(
    tmp_path: Path, write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    holmes(write, "The pod is out of memory")
    case = imported(tmp_path, "holmesgpt")["ask-01-cart"]
    assert [fact.expression for fact in case.expectation.facts] == ["false"]
    assert "1 of them fail until you write their expectations" in capsys.readouterr().out


def test_runlore_has_one_answer_for_each_tool(tmp_path: Path, write: Write) -> None:
    write("evict.yaml", """
name: evict
alert_title: NodeMemory
prompt: node n-1 is full
commons_dir: fixtures/commons
tools: {pod_status: "report Running", kube_events: ''}
expected: {must_contain: [Memory], root_cause_entities: [report-worker, "not a name"], distractors: [fluent-bit]}
ground_truth: {root_cause: too much}
""")  # fmt: skip
    write("values.yaml", "replicas: 3\n")
    cases = imported(tmp_path, "runlore")
    assert list(cases) == ["evict"]
    case = cases["evict"]
    assert case.expectation.root_cause is not None and case.expectation.root_cause.entities == ("report-worker*",)
    assert case.expectation.distractors == ("fluent-bit*",)
    assert [fact.message for fact in case.expectation.facts] == [
        "The finding does not say: Memory", "The finding does not say: not a name",
    ]  # fmt: skip
    assert ask(case, "runlore", "pod_status", name="report") == RecordedAnswer(
        Rung.WILDCARD, "report Running", False, 2
    )
    assert ask(case, "runlore", "pod_status").rung is Rung.WILDCARD
    assert ask(case, "runlore", "pod_logs").rung is Rung.MISS
    assert "commons_dir" in (tmp_path / "out/evict.yaml").read_text()


def test_itbench_lists_objects_events_and_logs_and_tells_what_it_lacks(tmp_path: Path, write: Write) -> None:
    def row(*cells: str) -> str:
        return "\t".join('"' + cell.replace('"', '""') + '"' for cell in cells) + "\n"

    def body(phase: str, name: str = "ad-1") -> str:
        meta = {"name": name, "namespace": "demo"}
        return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "status": {"phase": phase}})

    write(
        "Scenario-1/ground_truth.yaml",
        "groups:\n- {id: ad, kind: Pod, filter: ['ad-.*'], root_cause: true}\n- {id: b}\n",
    )
    write("Scenario-1/alerts/alerts_1.json", {"data": {"alerts": [{
        "state": "firing", "activeAt": "2026-03-10T18:30:00Z", "labels": {"alertname": "Errors"}}]}})  # fmt: skip
    rows = (
        row("Timestamp", "Body") + row("1", body("Running")) + row("2", body("Failed")) + row("3", body("Running", "b"))
    )
    write("Scenario-1/k8s_objects_raw.tsv", rows + "broken\n")
    event = {"object": {"metadata": {"namespace": "demo"}, "reason": "OOMKilling", "message": "killed"}}
    write("Scenario-1/k8s_events_raw.tsv", row("Body") + row(json.dumps(event)))
    lines = row("Timestamp", "SeverityText", "ServiceName", "Body")
    write("Scenario-1/otel_logs_raw.tsv", lines + "".join(row("t", "ERROR", "ad", f"line {n}") for n in range(600)))
    case = imported(tmp_path, "itbench")["scenario-1"]
    assert case.cassette.header.alert.type == "Errors"
    assert case.expectation.root_cause is not None and case.expectation.root_cause.entities == ("ad*",)
    pod = ask(case, "itbench", "resources_get", apiVersion="v1", kind="Pod", namespace="demo", name="ad-1")
    assert (pod.rung, json.loads(pod.result)["status"]["phase"]) == (Rung.DERIVED, "Failed")
    assert "OOMKilling" in ask(case, "itbench", "events_list", namespace="demo").result
    assert ask(case, "itbench", "service_logs", service="ad", tail=1).result == "t ERROR line 599\n"
    assert len(ask(case, "itbench", "service_logs", service="ad").result.splitlines()) == 500
    assert "Metrics and traces are left out" in (tmp_path / "out/scenario-1.yaml").read_text()


def test_a_case_that_cannot_be_read_is_told_and_the_others_are_written(
    tmp_path: Path, write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    opsbench(write, "good")
    for place in ("no-truth", "no-json", "no-object", "constant"):
        opsbench(write, place)
    (tmp_path / "given/no-truth/metadata.json").unlink()
    write("no-json/tool_cache.json", "{")
    write("no-object/metadata.json", {"result": {"fault_object": 3}})
    write("constant/tool_cache.json", '{"GetAlerts:{}": NaN}')
    assert list(imported(tmp_path, "cloud-opsbench", status=1)) == ["good"]
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 4
    for wanted in ("no-truth/metadata.json: there is no such file", "no-json/tool_cache.json: is no JSON",
                   "no-object/metadata.json: result.fault_object: must be", "constant/tool_cache.json"):  # fmt: skip
        assert any(wanted in line for line in said), said


def test_nothing_outside_the_folder_is_read(tmp_path: Path, write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "eks_pods.json").write_text('{"secret": 1}')
    (outside / "scenario.yml").write_text("{}")
    for name, base in (("a", "../../outside"), ("b", "/etc"), ("c", "link")):
        write(f"{name}/answer.yml", "root_cause_category: x\nrequired_keywords: [y]\n")
        write(f"{name}/scenario.yml", f"base: {base}\n")
        write(f"{name}/alert.json", {})
    (tmp_path / "given/link").symlink_to(outside, target_is_directory=True)
    opsbench(write, "d")
    (tmp_path / "given/d/metadata.json").unlink()
    (tmp_path / "given/d/metadata.json").symlink_to(outside / "eks_pods.json")
    os.mkfifo(tmp_path / "given/d/pipe.txt")
    assert import_cases("opensre", tmp_path / "given", tmp_path / "out") == 1
    assert import_cases("cloud-opsbench", tmp_path / "given", tmp_path / "out2") == 1
    said = capsys.readouterr().err
    assert said.count("is not beside it") == 3 and "links are not followed" in said
    assert not list((tmp_path / "out").iterdir()) and not list((tmp_path / "out2").iterdir())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: &x [1]\nb: *x\n", "line 2: aliases are not read"),
        ("a: 1\na: 2\n", "key a occurs twice"),
        ("- 1\n", "must be a mapping"),
        ("a: [" * 200 + "]" * 200, "test_case.yaml"),
        ("user_prompt: !!python/object:os.system x\n", "test_case.yaml"),
        ("expected_output: 3\n", "expected_output: must be a text"),
    ],
)
def test_wrong_yaml_is_one_sentence(
    tmp_path: Path, write: Write, capsys: pytest.CaptureFixture[str], text: str, words: str
) -> None:
    write("x/test_case.yaml", text)
    assert import_cases("holmesgpt", tmp_path / "given", tmp_path / "out") == 1
    said = capsys.readouterr().err
    assert words in said and len(said.splitlines()) == 1


@pytest.mark.parametrize("more", [0, 1])
def test_a_file_is_read_up_to_its_limit(
    tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], more: int
) -> None:
    opsbench(write, "x")
    size = (tmp_path / "given/x/tool_cache.json").stat().st_size
    monkeypatch.setattr(import_folder, "MAX_JSON", size - more)
    assert import_cases("cloud-opsbench", tmp_path / "given", tmp_path / "out") == more
    assert ("bytes; at most" in capsys.readouterr().err) is bool(more)


def test_the_command_names_formats_and_refuses_what_it_cannot_use(tmp_path: Path, write: Write) -> None:
    opsbench(write)
    given, out = str(tmp_path / "given"), str(tmp_path / "out")
    run = CliRunner().invoke
    wrong = run(app, ["eval", "import", "other", given, "--out", out])
    assert wrong.exit_code == 2 and all(name in wrong.stderr for name in FORMATS)
    assert run(app, ["eval", "import", "cloud-opsbench", given + "x", "--out", out]).exit_code == 1
    none = run(app, ["eval", "import", "itbench", given, "--out", out])
    assert none.exit_code == 1 and "has no case of ITBench" in none.stderr
    done = run(app, ["eval", "import", "cloud-opsbench", given, "--out", out, "--server", "mine"])
    assert done.exit_code == 0 and "MCPServer mine" in done.stdout
    again = run(app, ["eval", "import", "cloud-opsbench", given, "--out", out])
    assert again.exit_code == 1 and "is not empty" in again.stderr


@pytest.mark.parametrize(("name", "least"), [("opensre", 10), ("holmesgpt", 10), ("runlore", 5)])
def test_the_published_samples_are_imported_whole(tmp_path: Path, name: str, least: int) -> None:
    if not (SAMPLES / name).is_dir():
        pytest.skip(f"the samples of {name} are not here")
    assert import_cases(name, SAMPLES / name, tmp_path / "out") == 0
    read = read_suite(tmp_path / "out")
    assert read.problems == [] and len(read.suite.cases) >= least
    for case in read.suite.cases:
        ladder = Ladder(case.cassette)
        rungs = {ladder.answer(c.server, c.tool, c.arguments_text).rung for c in case.cassette.calls}
        assert rungs <= {Rung.EXACT, Rung.WILDCARD}
