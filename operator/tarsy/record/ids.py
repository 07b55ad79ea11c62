"""Deterministic identities of the rows of a run.

Every row of a run is named by its place in it (stage 0, agent 1, model call 7), hashed into a UUID. A step that is
written twice, by a retry or by a resumed attempt, therefore meets its own unique key instead of making a second row:
"one row a step" holds by construction, not by care.
"""

from uuid import UUID, uuid5

_NAMESPACE = UUID("6f1f3ad4-0b8e-5b6e-9d0e-7a1f5a5e7a51")


def stage_id(investigation: UUID, index: int) -> UUID:
    """The id of the stage at `index` (0-based, synthesis and summary stages counted)."""
    return uuid5(investigation, f"stage/{index}")


def execution_id(stage: UUID, index: int) -> UUID:
    """The id of the agent execution at `index` (0-based, launch order) of a stage."""
    return uuid5(stage, f"execution/{index}")


def model_call_id(execution: UUID, number: int) -> UUID:
    """The id of the `number`-th model call (0-based, interrupted and failed ones counted) of an execution."""
    return uuid5(execution, f"model/{number}")


def tool_call_id(execution: UUID, message_seq: int, index: int, attempt: int) -> UUID:
    """The id of one try of the tool call at `index` of the assistant message `message_seq`."""
    return uuid5(execution, f"tool/{message_seq}/{index}/{attempt}")


def idempotency_key(execution: UUID, message_seq: int, index: int) -> str:
    """What a tool server may use to recognise a repeated call: the same for every try of one call."""
    return str(uuid5(execution, f"tool/{message_seq}/{index}"))


def call_ref(idempotency_key: str) -> str:
    """What a model knows a tool call by and cites it with: unique in its run, the same for every try of one call."""
    return f"call_{idempotency_key.replace('-', '')[:12]}"


def event_id(owner: UUID, part: str) -> UUID:
    """The id of the timeline event that tells `part` (for example "response") of the row `owner`."""
    return uuid5(owner, f"event/{part}")


def worker_id(host: str, pid: int, nonce: str) -> UUID:
    """The id of one worker process; `nonce` keeps two processes with one pid apart."""
    return uuid5(_NAMESPACE, f"worker/{host}/{pid}/{nonce}")
