"""Seals the steps of a run: a digest of every row that a step writes, chained to the steps before.

A step has one entry a row, or a part of a row that is written later: a key, such as `tool-call/<id>/answer`, and the
SHA-256 of the values in it. The digest of the step is the SHA-256 of its entries. The head of the chain after it is the
SHA-256 of the head before, this digest, and the time of the transaction in microseconds; Postgres computes it in the
statement of the step (`_next_head` of `fragments.sql`). The status of the object publishes the head.

`of_step` makes the entries of what is written, `entry` those of what is read (`sealed_record.py`), from the same
values in the same order. Of an entry that is written twice the first counts, since rows are not written again; timeline
events, and what an agent was offered, are replaced, so of those the last counts (`REPLACED`).
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import orjson

from tarsy.store.text import as_stored

REPLACED = ("event/", "offered/", "missing/")
"""Beginnings of keys whose last entry counts."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

_Values = Mapping[str, Any]


@dataclass(slots=True)
class Seal:
    """The entries of a step, in order."""

    keys: list[str] = field(default_factory=list)
    digests: list[bytes] = field(default_factory=list)

    def add(self, key: str, *values: Any) -> None:
        """Adds the entry of a row with its values."""
        self.keys.append(key)
        self.digests.append(entry(*values))

    def extend(self, other: "Seal") -> None:
        """Adds the entries of another."""
        self.keys += other.keys
        self.digests += other.digests

    def columns(self, prefix: str = "") -> dict[str, Any]:
        """Returns the parameters of a statement; all are null for a step without entries."""
        some = bool(self.keys)
        return {
            f"{prefix}seal_digest": step_digest(self.keys, self.digests) if some else None,
            f"{prefix}seal_keys": self.keys if some else None,
            f"{prefix}seal_digests": self.digests if some else None,
        }


def entry(*values: Any) -> bytes:
    """Returns the digest of the values of a row, as Postgres gives them back."""
    return hashlib.sha256(orjson.dumps(values, default=_plain, option=orjson.OPT_SORT_KEYS)).digest()


def step_digest(keys: Sequence[str], digests: Sequence[bytes]) -> bytes:
    """Returns the digest of the entries of a step; one without its other half, which only a change leaves, is none."""
    entries = zip(keys, digests, strict=False)
    return hashlib.sha256(b"".join(key.encode() + b"\0" + digest for key, digest in entries)).digest()


def next_head(head: bytes | None, digest: bytes, at: datetime) -> bytes:
    """Returns the head of the chain after a step.

    Args:
        head: before it; None: it is the first.
        digest: of the step.
        at: time of its transaction.
    """
    return hashlib.sha256((head or b"") + digest + ((at - _EPOCH) // _MICROSECOND).to_bytes(8, signed=True)).digest()


def of_step(query: str, values: _Values, events: Mapping[str, Sequence[Any]]) -> Seal:
    """Returns the entries of a step of a run.

    Args:
        query: name of its statement; of two boundaries in one the names of both.
        values: parameters of the statement.
        events: parameters that are its timeline events (`columns.event_columns`).
    """
    seal = Seal()
    for part in query.split("__"):
        _PARTS[part](seal, values)
    add_events(seal, events)
    return seal


def add_events(seal: Seal, events: Mapping[str, Sequence[Any]]) -> None:
    """Adds the entries of the timeline events that are closed; one that is streaming is not complete yet."""
    for identity, *parts in zip(
        events["event_ids"],
        events["event_types"],
        events["event_statuses"],
        events["event_contents"],
        events["event_metadata"],
        events["event_stages"],
        events["event_executions"],
        events["event_model_calls"],
        events["event_tool_calls"],
        strict=True,
    ):
        if parts[1] != "streaming":
            parts[3] = as_stored(parts[3])
            seal.add(f"event/{identity}", *parts)


def of_acceptance(values: _Values) -> Seal:
    """Returns the entries of the row of a run, or of an answer to a question (it has a parent), and of its input."""
    seal = Seal()
    seal.add("run", *(values[name] for name in (RUN if values.get("parent") is None else ANSWER_RUN)))
    seal.add("input", as_stored(values["author"]), *(values.get(name) for name in INPUT[1:]))
    if values.get("precedents") is not None:
        seal.add("precedents", as_stored(values["precedents"]))
    return seal


def of_end(values: _Values) -> Seal:
    """Returns the entry of the outcome of a run."""
    seal = Seal()
    seal.add("outcome", *(as_stored(values[name]) for name in END))
    return seal


RUN = ("namespace", "namespace_uid", "name", "alert_type", "chain", "chain_namespace", "plan_hash", "stages_planned")
ANSWER_RUN = ("parent", "name", "plan_hash")
INPUT = ("author", "alert_data", "runbook", "plan", "question")
END = (
    "state",
    "final_analysis",
    "finding",
    "executive_summary",
    "executive_summary_error",
    "failure_reason",
    "failure_message",
    "replay_report",
)
STAGE = ("index", "name", "kind", "expected_agents", "parallel", "success_policy")
STAGE_END = ("state", "failure_reason", "failure_message")
EXECUTION = ("stage", "index", "agent", "display_name", "strategy", "provider", "model")
EXECUTION_END = ("state", "result", "failure_reason", "failure_message")
DISPATCH = ("parent", "dispatched_by", "task", "hypothesis")
MODEL_CALL = ("execution", "number", "kind", "provider", "model", "strategy", "message_count", "tool_set", "request")
MODEL_CALL_END = (
    "state",
    "duration_ms",
    "thinking",
    "response_metadata",
    "input_tokens",
    "output_tokens",
    "thinking_tokens",
    "cached_tokens",
    "failure_reason",
    "failure_message",
    "cost_usd",
)
MESSAGE = ("role", "content", "tool_calls", "tool_call_id", "tool_name", "provider_state")
TOOL_CALL = (
    "execution",
    "message_seq",
    "index",
    "call_id",
    "server",
    "tool",
    "arguments",
    "idempotency_key",
    "made",
    "repeatable",
    "repeated_of",
    "access",
    "refused",
)
ANSWER = ("result", "rung", "cassette_line")


def answer_values(values: Mapping[str, Any]) -> list[Any]:
    """Returns what is sealed of an answer; without classes, what code before they existed seals."""
    classes = values["integrity"]
    return [*(values[name] for name in ANSWER), *([] if classes is None else [as_stored(classes)])]


def stage_end_values(values: Mapping[str, Any]) -> list[Any]:
    """Returns what is sealed of the end of a stage; without a model's word, what code before actions seals."""
    word = values["word"]
    return [*(values[name] for name in STAGE_END), *([] if word is None else [word])]


def execution_values(values: Mapping[str, Any]) -> list[Any]:
    """Returns what is sealed of the beginning of an execution; code before sub-agents seals the same without them."""
    dispatched = DISPATCH if values["parent"] is not None else ()
    return [values[name] for name in (*EXECUTION, *dispatched)]


def execution_end_values(values: Mapping[str, Any]) -> list[Any]:
    """Returns what is sealed of the end of an execution; without a verdict, what code before verdicts seals."""
    verdict = values["verdict"]
    return [*(values[name] for name in EXECUTION_END), *([] if verdict is None else [as_stored(verdict)])]


def _stage_finished(seal: Seal, values: _Values) -> None:
    seal.add(f"stage/{values['id']}/end", *stage_end_values(values))


def _execution_begun(seal: Seal, values: _Values) -> None:
    seal.add(f"execution/{values['id']}", *execution_values(values))


def _execution_finished(seal: Seal, values: _Values) -> None:
    seal.add(f"execution/{values['id']}/end", *execution_end_values(values))


def _named(kind: str, columns: Sequence[str], end: str = "") -> Callable[[Seal, _Values], None]:
    def add(seal: Seal, values: _Values) -> None:
        seal.add(f"{kind}/{values['id']}{end}", *(values[name] for name in columns))

    return add


def _ended(values: _Values, columns: Sequence[str]) -> list[Any]:
    return [as_stored(values[f"ended_{name}"]) for name in columns]


def _model_call_started(seal: Seal, values: _Values) -> None:
    seal.add(f"model-call/{values['id']}", *(as_stored(values[name]) for name in MODEL_CALL))
    execution = values["execution"]
    said = zip(
        values["roles"],
        values["contents"],
        values["tool_calls"],
        values["tool_call_ids"],
        values["tool_names"],
        values["provider_states"],
        strict=True,
    )
    for seq, (role, content, calls, call_id, tool, state) in enumerate(said, values["first_seq"]):
        seal.add(f"message/{execution}/{seq}", role, content, as_stored(calls), call_id, tool, as_stored(state))
    for seq, content in zip(values["superseded_seqs"], values["superseded_contents"], strict=True):
        seal.add(f"superseded/{execution}/{seq}/{values['number']}", content)


def _model_call_finished(seal: Seal, values: _Values) -> None:
    seal.add(f"model-call/{values['ended_id']}/end", *_ended(values, MODEL_CALL_END))
    if values["ended_message_seq"] is not None:
        seal.add(
            f"message/{values['execution']}/{values['ended_message_seq']}",
            values["ended_role"],
            values["ended_content"],
            as_stored(values["ended_tool_calls"]),
            None,
            None,
            as_stored(values["ended_provider_state"]),
        )


def _tool_call_answered(seal: Seal, values: _Values) -> None:
    seal.add(f"tool-call/{values['id']}/answer", *answer_values(values))


def _tool_call_finished(seal: Seal, values: _Values) -> None:
    answer = {name: as_stored(values[f"ended_{name}"]) for name in (*ANSWER, "integrity")}
    seal.add(f"tool-call/{values['ended_id']}/answer", *answer_values(answer))
    seal.add(f"tool-call/{values['ended_id']}/end", values["ended_state"])
    seal.add(
        f"message/{values['execution']}/{values['ended_message_seq']}",
        values["ended_role"],
        values["ended_content"],
        None,
        values["ended_tool_call_id"],
        values["ended_tool_name"],
        None,
    )


def _pinned(seal: Seal, values: _Values) -> None:
    for server, pins in zip(values["servers"], values["pins"], strict=True):
        seal.add(f"tools/{server}", as_stored(pins))
    if values["execution"] is not None:
        seal.add(f"offered/{values['execution']}", values["tool_set"], as_stored(values["instructions"]))


def _missing(seal: Seal, values: _Values) -> None:
    for server, reason in values["missing"].items():
        seal.add(f"missing/{as_stored(server)}", as_stored(reason))


def _budget(seal: Seal, values: _Values) -> None:
    seal.add("budget", values["budget_limit"], values["budget_message"])


def _nothing(seal: Seal, values: _Values) -> None:
    """Adds nothing: the step writes events only."""


_PARTS: Mapping[str, Callable[[Seal, _Values], None]] = {
    "write_events": _nothing,
    "pin_tools": _pinned,
    "degrade_evidence": _missing,
    "budget_exceeded": _budget,
    "begin_stage": _named("stage", STAGE),
    "finish_stage": _stage_finished,
    "begin_execution": _execution_begun,
    "finish_execution": _execution_finished,
    "model_call_started": _model_call_started,
    "model_call_finished": _model_call_finished,
    "tool_call_started": _named("tool-call", TOOL_CALL),
    "tool_call_answered": _tool_call_answered,
    "tool_call_finished": _tool_call_finished,
}


def _plain(value: Any) -> str:
    if isinstance(value, Decimal):
        return format(value.normalize(), "f")
    return str(value)
