"""The five layers of a run as golden files: status, stages, timeline, model conversations, tool calls.

Decision: a file of a model call shows what is new since the call before it of the same conversation, because that is
how a person reads a conversation; that everything before was sent again unchanged is asserted, and said in the file.
Executions stand in launch order, whoever was faster.
"""

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import asyncpg
import pytest
import yaml

import goldens
from e2e.scenarios.normal import Normal, constant
from e2e.scenarios.record import Execution, ModelCall, Run
from tarsy.engine.prompts.calendar import calendar
from tarsy.record.messages import Message
from tarsy.record.timeline import EventType, TimelineEvent

_NATIVE = ("code_execution", "grounding")


class _Dumper(yaml.SafeDumper):
    pass


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def check_layers(folder: Path, run: Run, request: pytest.FixtureRequest, more: Mapping[str, str]) -> None:
    """Compares the run with the files of `folder`, or writes them; a file that no layer makes any more is an error.

    `more` are further texts of the scenario, by the names of their files.
    """
    normal = Normal(run)
    texts = {path: normal(text).rstrip("\n") + "\n" for path, text in (*_layers(run), *more.items())}
    if request.config.getoption(goldens.OPTION):
        shutil.rmtree(folder, ignore_errors=True)
    else:
        there = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
        assert set(texts) == there, f"{folder.name}: missing {set(texts) - there}, left over {there - set(texts)}"
    for path, text in texts.items():
        goldens.check(folder / path, text, request)


def spoken(run: Run, source: Run | None = None) -> dict[str, str]:
    """What models were sent and said, all tool calls, and the finding; `source` is the run that a replay replays."""
    normal = Normal(run)
    times = [calendar(execution.row["started_at"]) for execution in (source or run).executions]

    def same(text: str) -> str:
        for time in times:
            text = text.replace(time, "<calendar>")
        return normal(text)

    texts = {path: same(text) for path, text in _layers(run) if path.startswith(("models/", "tool_calls"))}
    return texts | {"finding": same(_yaml(_outcome(run)))}


def _layers(run: Run) -> Iterator[tuple[str, str]]:
    yield "status.yaml", _yaml({obj["kind"]: constant(obj["status"]) for obj in run.objects}, sort=True)
    yield "stages.yaml", _yaml({"run": _outcome(run), "stages": [_stage(run, stage) for stage in run.stages]})
    yield "timeline.yaml", _yaml(list(_timeline(run)))
    yield "tool_calls.yaml", _yaml([_tool_call(e, call) for e in run.executions for call in e.tool_calls])
    for execution in run.executions:
        before: tuple[Message, ...] = ()
        offered: object = None
        for call in execution.model_calls:
            name = f"models/{execution.title}-call-{call.row['number'] + 1}.txt"
            yield name, "\n\n".join(_model_call(execution, call, before, call.row["definitions"] == offered))
            if call.row["request"] is None:  # a summary is no part of the conversation
                before, offered = call.sent, call.row["definitions"]


def _outcome(run: Run) -> dict[str, Any]:
    record, outcome = run.record, run.record.outcome
    return _filled(
        {
            "state": record.state.value,
            "desired_state": record.desired_state.value,
            "attempt": record.attempt,
            "model_calls": record.model_calls,
            "interrupted_model_calls": record.interrupted_model_calls or None,
            "tool_calls": record.tool_calls,
            "usage": record.usage.model_dump(),
            "cost_usd": str(record.cost_usd) if record.cost_usd is not None else None,
            "cost_complete": record.cost_complete,
            "budget_exceeded": record.budget_exceeded.message if record.budget_exceeded else None,
            "failure": f"{outcome.failure.reason}: {outcome.failure.message}" if outcome and outcome.failure else None,
            "final_analysis": outcome.final_analysis if outcome else None,
            "finding": _filled(outcome.finding.model_dump(mode="json")) if outcome and outcome.finding else None,
            "executive_summary": outcome.executive_summary if outcome else None,
            "executive_summary_error": outcome.executive_summary_error if outcome else None,
        }
    )


def _stage(run: Run, row: asyncpg.Record) -> dict[str, Any]:
    executions = [e for e in run.executions if e.row["stage"] == row["id"]]
    stage = {key: row[key] for key in ("index", "name", "kind", "state", "expected_agents", "parallel")}
    return _filled(
        {
            **stage,
            "success_policy": row["success_policy"],
            "failure": _failure(row),
            "executions": [_execution(execution) for execution in executions],
        }
    )


def _execution(execution: Execution) -> dict[str, Any]:
    row = execution.row
    plain = {key: row[key] for key in ("display_name", "agent", "strategy", "provider", "model", "state")}
    return _filled(
        {
            **plain,
            "model_calls": [f"{call.row['kind']}: {call.row['state']}" for call in execution.model_calls],
            "tool_calls": len(execution.tool_calls),
            "failure": _failure(row),
            "result": row["result"],
        }
    )


def _timeline(run: Run) -> Iterator[dict[str, Any]]:
    places = {execution.row["id"]: place for place, execution in enumerate(run.executions)}
    titles = {execution.row["id"]: execution.title for execution in run.executions}
    last = len(places)
    events = sorted(run.events, key=lambda e: (places.get(e.execution, last) if e.execution else last, e.seq))
    for execution, own in groupby(events, lambda e: e.execution):
        title = titles[execution] if execution else "(the run)"
        yield {"execution": title, "events": [_event(event) for event in _in_place(own)]}


def _in_place(events: Iterable[TimelineEvent]) -> Iterator[TimelineEvent]:
    """The events, calls that ran side by side in the order in which the model made them."""
    for calls, group in groupby(events, _is_call):
        yield from sorted(group, key=lambda event: event.metadata["place"] if calls else event.seq)


def _is_call(event: TimelineEvent) -> bool:
    return event.type in (EventType.LLM_TOOL_CALL, EventType.MCP_TOOL_SUMMARY)


def _event(event: TimelineEvent) -> dict[str, Any]:
    metadata = {key: value for key, value in event.metadata.items() if value not in (None, "", [], {})}
    return _filled(
        {
            "type": event.type.value,
            "status": event.status.value,
            "content": event.content,
            "metadata": metadata or None,
        }
    )


def _tool_call(execution: Execution, row: asyncpg.Record) -> dict[str, Any]:
    plain = ("server", "tool", "arguments", "state", "attempt", "made", "repeatable", "access", "refused", "result")
    return _filled(
        {
            "execution": execution.title,
            "cited_as": execution.ref(row),
            "provider_id": row["call_id"],
            **{key: row[key] for key in plain},
            "repeated_of": str(row["repeated_of"]) if row["repeated_of"] else None,
        }
    )


def _model_call(execution: Execution, call: ModelCall, before: Sequence[Message], same_tools: bool) -> Iterator[str]:
    row, unchanged = call.row, call.sent[: len(before)] == tuple(before)
    yield (
        f"{execution.row['display_name']}, stage {execution.row['stage_name']}, call {row['number'] + 1}: "
        f"{row['kind']}\nprovider {row['provider']}, model {row['model']}, strategy {row['strategy']}"
        + (f", native tools {', '.join(call.request.native_tools)}" if call.request.native_tools else "")
    )
    yield from _tools(row["definitions"] or (), same_tools)
    first = len(before) if unchanged else 0
    if first:
        yield f"===== messages 1 to {first}: as in the call before"
    for number, message in enumerate(call.sent[first:], first + 1):
        yield f"===== message {number}: {message.role.value}{_marks(message)}\n{message.content}"
    yield from _answer(row)


def _tools(definitions: Sequence[dict[str, Any]], same: bool) -> Iterator[str]:
    if not definitions:
        yield "no tools"
    elif same:
        yield f"tools: the same {len(definitions)}"
    else:
        lines = [
            f"- {t['name']}: {t['description']}\n  {json.dumps(t['parameters'], sort_keys=True)}" for t in definitions
        ]
        yield "tools:\n" + "\n".join(lines)


def _marks(message: Message) -> str:
    parts = [f"answer to {message.tool_call_id}"] if message.tool_call_id else []
    parts += [f"calls {call.name}({call.arguments}) as {call.id}" for call in message.tool_calls]
    if message.provider_state is not None:
        parts.append(f"provider state {json.dumps(message.provider_state, sort_keys=True)}")
    return "".join(f"\n      {part}" for part in parts)


def _answer(row: asyncpg.Record) -> Iterator[str]:
    used = ", ".join(f"{row[f'{kind}_tokens']} {kind}" for kind in ("input", "output", "thinking", "cached"))
    cost = f"; {row['cost_usd']:f} USD" if row["cost_usd"] is not None else ""
    yield f"===== answer: {row['state']} ({used} tokens{cost})"
    if row["failure_reason"]:
        yield f"failure: {_failure(row)}"
    if row["thinking"]:
        yield f"thinking: {row['thinking']}"
    if native := {key: row["response_metadata"][key] for key in _NATIVE if key in (row["response_metadata"] or ())}:
        yield f"native tools: {json.dumps(native, sort_keys=True)}"
    if row["answer_role"] == "assistant":
        if row["answer"]:
            yield row["answer"]
        for call in row["tool_calls"] or ():
            yield f"calls {call['name']}({call['arguments']}) as {call['id']}"
        if row["provider_state"]:
            yield f"provider state {json.dumps(row['provider_state'], sort_keys=True)}"


def _failure(row: asyncpg.Record) -> str | None:
    return f"{row['failure_reason']}: {row['failure_message']}" if row["failure_reason"] else None


def _filled(fields: dict[str, Any]) -> dict[str, Any]:
    """Without fields that say nothing."""
    return {key: value for key, value in fields.items() if value is not None and value not in ("", [], ())}


def as_yaml(value: Any) -> str:
    """Returns a value as goldens show it."""
    return _yaml(value, sort=True)


def _yaml(value: Any, *, sort: bool = False) -> str:
    return yaml.dump(value, Dumper=_Dumper, sort_keys=sort, allow_unicode=True, width=10**9)
