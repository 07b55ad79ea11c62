"""What traces and logs tell of a run: which step, how it went, and no word of what anybody said."""

import asyncio
import io
import json
import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
import structlog
from openinference.semconv.trace import OpenInferenceSpanKindValues, SpanAttributes, ToolAttributes
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes, mcp_attributes
from opentelemetry.trace import SpanKind, get_current_span

from tarsy.llm.protocol import ModelError, ModelErrorCode
from tarsy.observe import logs
from tarsy.observe.tracing import SpanStyle, Tracing, first_span
from tarsy.observe.tracing_export import RunIds
from tarsy.plan.model import Plan
from tarsy.record.boundaries import ToolCallStart
from tarsy.record.finding import Claim, Confidence, Finding
from tarsy.record.ids import call_ref
from tarsy.record.messages import ToolOutcome
from tarsy.record.run import DesiredState, ExecutionStart, RunOutcome, State
from tarsy.record.usage import Usage
from tarsy.runtime import run as run_module
from tarsy.runtime.run import Runner, RunnerOptions
from tarsy.runtime.run_control import LocalLease, RunControl
from tarsy.runtime.tracing_observer import TracingObserver, evaluated
from unit.engine.build import FakeToolboxes, ScriptedModels, agent, call, plan, stage
from unit.engine.clock import in_virtual_time
from unit.engine.memory import MemoryRecorder, Record
from unit.runtime.fakes import FakeQueue, run_id
from wire.scripted_client import Answer

CANARY = "canary-7f3a"
RUN = run_id(1)


class Stage:
    """A runner whose spans are kept, and a run of one agent with the tools `k8s.pods` and `k8s.logs`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *answers: Answer, style: SpanStyle | None = None) -> None:
        self.exporter = InMemorySpanExporter()
        ids = RunIds()
        provider = TracerProvider(id_generator=ids, shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracing = Tracing(provider.get_tracer("test"), ids.fixed, style)
        self.models = ScriptedModels({"triage": answers, "summary": [Answer(f"sum {CANARY}")]})
        self.record = Record()
        self.parents: list[int] = []
        self.queue = FakeQueue()
        self.control = RunControl(LocalLease(1e9), DesiredState.RUNNING)
        self.plan: Plan = plan(stage("look", agent(servers=("k8s",))), summary=True)
        monkeypatch.setattr(run_module, "RunWriter", lambda *_, **__: MemoryRecorder(self.record))

    async def pods(self, _: str) -> ToolOutcome:
        self.parents.append(get_current_span().get_span_context().span_id)
        return ToolOutcome(f"pod {CANARY}")

    async def run(self, attempt: int = 1) -> RunOutcome | None:
        loop = asyncio.get_running_loop()
        toolboxes = FakeToolboxes(
            {"k8s.pods": self.pods, "k8s.logs": _refused}, seen={"k8s": {"pods": "1", "logs": "2"}}
        )
        runner = Runner(
            None,
            self.queue,  # type: ignore[arg-type]
            self.models,
            toolboxes,
            lambda *_: None,
            RunnerOptions(tracing=self.tracing, clock=loop.time),
        )
        self.queue.attempts[RUN] = attempt
        claimed = self.queue.claimed(1)
        changes: dict[str, Any] = {"plan": self.plan, "alert_data": f"alert {CANARY}", "runbook": CANARY}
        await runner.run(replace(claimed, **changes), self.control)
        return self.queue.ended.get(RUN)

    @property
    def spans(self) -> dict[str, ReadableSpan]:
        return {span.name: span for span in self.exporter.get_finished_spans()}


async def _refused(_: str) -> ToolOutcome:
    return ToolOutcome(CANARY, is_error=True)


def looked(*calls: str) -> Answer:
    made = tuple(call(name, f"c{i}", json.dumps({"q": CANARY})) for i, name in enumerate(calls))
    return Answer(
        f"I look {CANARY}", tool_calls=made, usage=Usage(input_tokens=70, output_tokens=30, thinking_tokens=9)
    )


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def test_a_run_is_a_tree_of_spans_with_what_each_step_used(monkeypatch: pytest.MonkeyPatch) -> None:
    s = Stage(monkeypatch, looked("k8s.pods"), Answer(f"the end {CANARY}"))

    outcome = in_virtual_time(s.run())

    assert outcome is not None and outcome.state is State.COMPLETED
    first = s.spans["invoke_workflow crashloop"]
    assert first.context is not None and first.context.trace_id == RUN.int
    assert first.context.span_id == first_span(RUN, 1)
    by_id = {span.context.span_id: span.name for span in s.exporter.get_finished_spans() if span.context}
    tree = {span.name: by_id[span.parent.span_id] for span in s.exporter.get_finished_spans() if span.parent}
    assert tree == {
        "stage look": "invoke_workflow crashloop",
        "stage executive-summary": "invoke_workflow crashloop",
        "invoke_agent triage": "stage look",
        "invoke_agent summary": "stage executive-summary",
        "chat scripted": "invoke_agent summary",
        "execute_tool pods": "invoke_agent triage",
    }
    chats = [span for span in s.exporter.get_finished_spans() if span.name == "chat scripted"]
    assert {span.kind for span in chats} == {SpanKind.CLIENT} and len(chats) == 3
    said = attributes(chats[0])
    assert (said["gen_ai.operation.name"], said["gen_ai.provider.name"]) == ("chat", "openai")
    assert said["gen_ai.usage.input_tokens"] == 70 and said["gen_ai.usage.reasoning.output_tokens"] == 9
    assert said["gen_ai.response.finish_reasons"] == ("tool_calls",)
    assert "gen_ai.usage.input_tokens" not in attributes(chats[1])  # its provider said nothing of it
    tool = s.spans["execute_tool pods"]
    assert tool.context is not None and s.parents == [tool.context.span_id]
    assert attributes(first)["tarsy.attempt"] == 1 and attributes(first)["tarsy.state"] == "completed"


def test_an_agent_is_named_by_its_chain_and_versioned_by_its_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    s = Stage(monkeypatch, looked("k8s.pods"), Answer("the end"))
    in_virtual_time(s.run())
    said = attributes(s.spans["invoke_agent triage"])
    assert said["gen_ai.agent.id"] == f"{s.plan.chain.namespace}/{s.plan.chain.name}/kubernetes-agent"
    assert said["gen_ai.agent.version"] == s.plan.digest


def test_a_tool_span_has_the_id_that_claims_cite_and_names_mcp(monkeypatch: pytest.MonkeyPatch) -> None:
    s = Stage(monkeypatch, looked("k8s.pods"), Answer("the end"))
    in_virtual_time(s.run())
    said = attributes(s.spans["execute_tool pods"])
    (row,) = s.record.tool_calls.values()
    assert said["gen_ai.tool.call.id"] == call_ref(row.start.idempotency_key)
    assert (said["mcp.method.name"], said["network.transport"]) == ("tools/call", "tcp")


def test_the_check_of_a_findings_citations_is_an_evaluation(monkeypatch: pytest.MonkeyPatch) -> None:
    finding = Finding(
        summary="full",
        confidence=Confidence.MEDIUM,
        claims=(Claim(text="a", supported=True), Claim(text="b")),
    )
    assert evaluated(finding) == {
        "gen_ai.evaluation.name": "citations",
        "gen_ai.evaluation.score.value": 0.5,
        "gen_ai.evaluation.score.label": "Medium",
        "gen_ai.evaluation.explanation": "1 of 2 claims are supported by results of tools",
    }


def test_content_is_in_the_spans_where_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    style = SpanStyle(content=True)
    s = Stage(monkeypatch, looked("k8s.pods", "k8s.made-up"), Answer(f"the end {CANARY}"), style=style)
    in_virtual_time(s.run())
    tool, made_up = attributes(s.spans["execute_tool pods"]), attributes(s.spans["execute_tool _OTHER"])
    assert tool["gen_ai.tool.call.arguments"] == json.dumps({"q": CANARY})
    assert tool["gen_ai.tool.call.result"] == f"pod {CANARY}"
    assert "gen_ai.tool.call.arguments" not in made_up
    first, second, *_ = [span for span in s.exporter.get_finished_spans() if span.name == "chat scripted"]
    asked = json.loads(attributes(first)["gen_ai.input.messages"])
    assert f"alert {CANARY}" in json.dumps(asked) and asked[0]["role"] == "system"
    (answer,) = json.loads(attributes(first)["gen_ai.output.messages"])
    assert [part["type"] for part in answer["parts"]] == ["text", "tool_call", "tool_call"]
    assert "gen_ai.input.messages" not in attributes(second)  # all of it is in the spans before


def test_a_stage_without_a_model_names_none_and_its_own_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    s = Stage(monkeypatch, style=SpanStyle(openinference=True))

    async def observed() -> None:  # in a task of its own, whose log lines have stage and agent
        trace = s.tracing.run(RUN, 1, "run", {})
        observer = TracingObserver(s.plan, trace)
        observer.execution_began(ExecutionStart(run_id(2), run_id(3), 0, "tarsy", "changes", "changes", "", ""))
        names = [("tarsy", "triage"), ("", "load_skill"), ("", "dispatch_agent"), ("tarsy", CANARY), ("", CANARY)]
        for number, (server, tool) in enumerate(names, 4):
            made = call(f"{server}.{tool}" if server else tool, f"c{number}")
            start = ToolCallStart(run_id(number), run_id(2), 0, number, 0, made, server, tool, f"k{number}")
            observer.tool_call_began(start)
            observer.tool_call_answered(start.id)
        trace.close()

    in_virtual_time(observed())

    said = attributes(s.spans["invoke_agent changes"])
    assert not {"gen_ai.provider.name", "gen_ai.request.model", "llm.provider"} & said.keys()
    tools = [name for name in s.spans if name.startswith("execute_tool")]
    assert sorted(tools) == [f"execute_tool {name}" for name in ("_OTHER", "dispatch_agent", "load_skill", "triage")]
    triage = s.spans["execute_tool triage"]
    assert attributes(triage)["tarsy.tool.server"] == "tarsy" and triage.kind is SpanKind.INTERNAL
    assert not [span for span in s.exporter.get_finished_spans() if "mcp.method.name" in attributes(span)]
    assert CANARY not in "".join(span.to_json() for span in s.exporter.get_finished_spans())


@pytest.mark.parametrize("content", [False, True])
def test_the_other_flavour_names_kinds_tokens_and_content(monkeypatch: pytest.MonkeyPatch, content: bool) -> None:
    style = SpanStyle(content=content, openinference=True)
    s = Stage(monkeypatch, looked("k8s.pods"), Answer("the end"), style=style)
    in_virtual_time(s.run())
    kinds = {name: attributes(span).get("openinference.span.kind") for name, span in s.spans.items()}
    assert kinds["invoke_workflow crashloop"] == "CHAIN" and kinds["invoke_agent triage"] == "AGENT"
    assert kinds["chat scripted"] == "LLM" and kinds["execute_tool pods"] == "TOOL"
    chat = next(span for span in s.exporter.get_finished_spans() if span.name == "chat scripted")
    assert attributes(chat)["llm.token_count.total"] == 100
    assert ("input.value" in attributes(chat)) is content


def test_every_attribute_is_one_of_the_conventions(monkeypatch: pytest.MonkeyPatch) -> None:
    style = SpanStyle(content=True, openinference=True)
    s = Stage(monkeypatch, looked("k8s.pods", "k8s.logs"), Answer("the end"), style=style)
    in_virtual_time(s.run())
    known = {"error.type", "network.transport", *_names_of(gen_ai_attributes), *_names_of(mcp_attributes)}
    known |= {*_names_of(SpanAttributes), *_names_of(ToolAttributes)}
    used = {name for span in s.exporter.get_finished_spans() for name in attributes(span)}
    assert {name for name in used if not name.startswith("tarsy.")} - known == set()
    kinds = {str(attributes(span).get("openinference.span.kind")) for span in s.exporter.get_finished_spans()}
    assert kinds - {"None"} <= {kind.value for kind in OpenInferenceSpanKindValues}


def _names_of(declared: object) -> set[str]:
    return {value for value in vars(declared).values() if isinstance(value, str)}


def test_no_span_holds_a_word_of_alert_model_or_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    s = Stage(monkeypatch, looked("k8s.pods", f"k8s.{CANARY}", CANARY, "k8s.logs"), Answer(f"the end {CANARY}"))

    in_virtual_time(s.run())

    spans = s.exporter.get_finished_spans()
    assert len([span for span in spans if span.name == "execute_tool _OTHER"]) == 2
    assert attributes(s.spans["execute_tool logs"])["error.type"] == "tool_error"
    assert CANARY not in "".join(span.to_json() for span in spans)


def test_an_attempt_that_goes_on_is_in_the_same_trace_and_says_which_was_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    s = Stage(monkeypatch, Answer("the end"))

    in_virtual_time(s.run(attempt=3))

    first = s.spans["invoke_workflow crashloop"]
    assert first.parent is None and first.context is not None and first.context.trace_id == RUN.int
    assert [link.context.span_id for link in first.links] == [first_span(RUN, 2)]
    assert attributes(first)["tarsy.attempt"] == 3


def test_steps_that_were_done_before_have_no_span_again(monkeypatch: pytest.MonkeyPatch) -> None:
    s = Stage(monkeypatch, Answer("the end"))
    in_virtual_time(s.run())
    s.exporter.clear()

    in_virtual_time(s.run(attempt=2))

    assert list(s.spans) == ["invoke_workflow crashloop"]


def test_a_failure_is_the_error_of_all_that_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = ModelError(ModelErrorCode.CREDENTIALS, f"key {CANARY}", retryable=False)
    s = Stage(monkeypatch, Answer(error=gone))

    outcome = in_virtual_time(s.run())

    assert outcome is not None and outcome.state is State.FAILED
    named = ("chat scripted", "invoke_agent triage", "stage look", "invoke_workflow crashloop")
    assert {attributes(s.spans[name])["error.type"] for name in named} == {"CredentialsRejected"}
    assert CANARY not in "".join(span.to_json() for span in s.exporter.get_finished_spans())


@pytest.mark.parametrize(
    ("stop", "error"), [("lose", "left"), ("cancel", "Cancelled")], ids=["lease lost", "cancelled"]
)
def test_what_was_under_way_is_told_as_interrupted(monkeypatch: pytest.MonkeyPatch, stop: str, error: str) -> None:
    s = Stage(monkeypatch, Answer("x", wait=asyncio.Event()))
    end: Callable[[], None] = s.control.lose if stop == "lose" else lambda: s.control.want(DesiredState.CANCELLED)

    async def stopped() -> None:
        s.control.task = asyncio.ensure_future(s.run())  # type: ignore[assignment]
        asyncio.get_running_loop().call_later(10, end)
        await asyncio.wait([s.control.task])  # type: ignore[list-item]

    in_virtual_time(stopped())

    assert attributes(s.spans["invoke_workflow crashloop"])["error.type"] == error
    assert attributes(s.spans["chat scripted"])["error.type"] == "interrupted"
    assert attributes(s.spans["invoke_agent triage"])["error.type"] == "interrupted"


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    """What is logged, as JSON lines; the log is as before at the end."""
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    stream = io.StringIO()
    logs.configure(json=True, stream=stream)
    try:
        yield stream
    finally:
        root.handlers = before
        root.setLevel(level)
        structlog.contextvars.clear_contextvars()


def test_a_line_of_the_log_says_which_stage_and_agent_it_is_about(
    monkeypatch: pytest.MonkeyPatch, lines: io.StringIO
) -> None:
    s = Stage(monkeypatch, looked("k8s.pods"), Answer("the end"))
    pods = s.pods

    async def logging_pods(arguments: str) -> ToolOutcome:
        logging.getLogger("a.tool").warning("asked")
        return await pods(arguments)

    monkeypatch.setattr(s, "pods", logging_pods)

    in_virtual_time(s.run())

    told = [json.loads(line) for line in lines.getvalue().splitlines()]
    (asked,) = [line for line in told if line["event"] == "asked"]
    assert (asked["stage"], asked["agent"], asked["level"], asked["logger"]) == ("look", "triage", "warning", "a.tool")
    (ended,) = [line for line in told if "ended" in line["event"]]
    assert "agent" not in ended
    assert CANARY not in lines.getvalue()
