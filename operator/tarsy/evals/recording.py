"""Makes a cassette of a run on record.

The texts are those of the record, hence masked as they were stored. What the record does not have, the cassette does
not have either: of a run by an older version whose models write their calls as text, no tool definitions are known,
and a replay counts each of its calls as not recorded.
"""

from collections.abc import Callable, Mapping, Sequence
from uuid import UUID

import orjson

from tarsy.evals.cassette import (
    AgentRecord,
    AlertRecord,
    Cassette,
    ChangesRecord,
    Header,
    KnownStatement,
    Place,
    RecordedCall,
    ServerRecord,
    SourceRecord,
    ToolRecord,
)
from tarsy.evals.recorded_changes import SERVER
from tarsy.record.finding import Finding
from tarsy.record.ids import call_ref
from tarsy.record.integrity import EvidenceMarks, Integrity
from tarsy.record.judging.recorded_run import RecordedAgent, RecordedRun, RecordedToolCall
from tarsy.record.messages import Access, ToolDefinition

ReadFinding = Callable[[str], Finding]
_CHANGES = "changes"


def cassette_of(run: RecordedRun, read_finding: ReadFinding) -> Cassette:
    """Returns the cassette of a run.

    Args:
        run: as read from the record.
        read_finding: reads the conclusion of a stage of kind Changes.
    """
    places = {agent.id: (agent.stage, agent.index) for agent in run.agents}
    header = Header(
        alert=AlertRecord(type=run.alert_type, data=run.alert_data),
        runbook=run.runbook,
        now=run.began,
        targets=(run.namespace,),
        servers=_servers(run),
        source=SourceRecord(
            namespace=run.namespace,
            name=run.name,
            uid=str(run.id),
            plan_hash=run.plan_hash,
            chain=run.chain,
            chain_namespace=run.chain_namespace,
        ),
        agents=tuple(_agent(agent) for agent in run.agents),
        changes=_changes(run, read_finding),
        precedents=tuple(run.precedents) or None,
    )
    return Cassette(header, tuple(_call(call, places) for call in run.calls))


def _call(call: RecordedToolCall, places: Mapping[UUID, tuple[int, int]]) -> RecordedCall:
    stage, agent = places[call.execution]
    shown, marks = None, call.marks
    if call.server == SERVER and marks is None:  # recorded before results had classes
        marks = EvidenceMarks(Integrity.K)
    if call.server == SERVER and call.told is not None:
        shown = call.told.partition("\n")[2]
    return RecordedCall(
        server=call.server,
        tool=call.tool,
        arguments=_arguments(call.arguments),
        result=call.result,
        is_error=call.is_error,
        at=call.started_at,
        integrity=None if marks is None else marks.integrity,
        control=() if marks is None else marks.control,
        state=marks is not None and marks.state,
        place=Place(stage=stage, agent=agent, message=call.message_seq, index=call.index),
        shown=shown,
    )


def _agent(agent: RecordedAgent) -> AgentRecord:
    changed = {server: tuple(tools) for server, tools in agent.changed.items() if tools} or None
    return AgentRecord(stage=agent.stage, agent=agent.index, began=agent.began, changed=changed)


def _arguments(text: str) -> dict[str, object] | str:
    """Returns arguments as an object where that is the same text, else the text that the model wrote."""
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
    return found if isinstance(found, dict) and orjson.dumps(found).decode() == text else text


def _servers(run: RecordedRun) -> dict[str, ServerRecord]:
    defined: dict[str, dict[str, ToolDefinition]] = {}
    instructions: dict[str, str] = {}
    for agent in run.agents:
        for tool in agent.tools:
            server, _, name = tool.name.partition(".")
            defined.setdefault(server, {}).setdefault(name, tool)
        for server, text in agent.instructions.items():
            instructions.setdefault(server, text)
    found = {
        server: ServerRecord(
            tools=_tools(run, server, defined.get(server, {})), instructions=instructions.get(server, "")
        )
        for server in sorted(defined.keys() | run.pins.keys())
    }
    missing = {name: ServerRecord(unavailable=why) for name, why in run.missing.items() if name not in found}
    return {**found, **{name: record for name, record in missing.items() if name != SERVER}}


def _tools(run: RecordedRun, server: str, defined: Mapping[str, ToolDefinition]) -> tuple[ToolRecord, ...]:
    digests = run.pins.get(server, {})
    return tuple(
        _tool(run, server, name, digests.get(name, ""), defined.get(name)) for name in _names(digests, defined)
    )


def _names(digests: Mapping[str, str], defined: Mapping[str, ToolDefinition]) -> Sequence[str]:
    return sorted(digests.keys() | defined.keys())


def _tool(run: RecordedRun, server: str, name: str, digest: str, definition: ToolDefinition | None) -> ToolRecord:
    return ToolRecord(
        name=name,
        defined=definition is not None,
        description=definition.description if definition else "",
        parameters_schema=dict(definition.parameters_schema) if definition else {},
        digest=digest,
        access=run.access.get((server, name), Access.UNKNOWN),
        repeatable=(server, name) in run.repeatable,
    )


def _changes(run: RecordedRun, read_finding: ReadFinding) -> ChangesRecord | None:
    agent = next((agent for agent in run.agents if agent.strategy == _CHANGES and agent.result), None)
    if agent is None or agent.result is None:
        return None
    found = read_finding(agent.result)
    tools = _cited(run, agent)
    statements = [
        KnownStatement(text=claim.text, tool=tools[citation.call_id], quote=citation.quote)
        for claim in found.claims
        for citation in claim.citations[:1]
        if citation.call_id in tools
    ]
    return ChangesRecord(summary=found.summary, confidence=found.confidence.value, statements=tuple(statements))


def _cited(run: RecordedRun, agent: RecordedAgent) -> Mapping[str, str]:
    """Returns the tools of the calls of an agent, by the ids that a finding cites."""
    return {call_ref(call.idempotency_key): call.tool for call in run.calls if call.execution == agent.id}
