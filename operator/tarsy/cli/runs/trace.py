"""Prints the model and tool calls of an investigation, or one in full (`trace NAME [--llm ID | --mcp ID]`).

Decision: an unambiguous prefix of an id suffices, because nobody types a UUID; the list prints such prefixes.
"""

import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Literal
from uuid import UUID

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tarsy.cli.console import Indented
from tarsy.cli.output import Output, for_programs, printer, write_output
from tarsy.cli.runs.render import action_lines, rung_text
from tarsy.client.api import TarsyClient, read_as, run_path
from tarsy.client.errors import ApiUseError
from tarsy.client.plain_text import one_line, plain
from tarsy.client.refusals import READ_TRACE
from tarsy.http.views.common import Spent
from tarsy.http.views.trace import (
    AgentTrace,
    CallView,
    MessageView,
    ModelCallDetails,
    ModelCallView,
    StageTrace,
    ToolCallDetails,
    ToolCallView,
    TraceView,
)
from tarsy.record.run import InteractionState, State
from tarsy.record.words import word

_Kind = Literal["llm", "mcp"]
SHORTEST_ID = 8
_PAGE = "2000"
_REASON = 60


async def show_trace(client: TarsyClient, namespace: str, name: str, question: str | None, output: Output) -> int:
    """Prints the calls of an investigation, or of the answer to a question about it; returns the exit status.

    Args:
        client: the API.
        namespace: the namespace of the investigation.
        name: the name of the investigation.
        question: the ChatMessage whose calls are printed; None: the investigation.
        output: for people, or the format for programs.

    Raises:
        ApiUseError: the investigation is not on record, or may not be read.
    """
    trace = await read_trace(client, namespace, name, question)
    if for_programs(output):
        write_output(trace, output)
    else:
        printer().print(listed(trace, wide=output == "wide"))
    return 0


async def show_call(client: TarsyClient, namespace: str, name: str, kind: _Kind, given: str, output: Output) -> int:
    """Prints one call with its full content; returns the exit status.

    Args:
        client: how it is read.
        namespace: of the investigation.
        name: of the investigation.
        kind: llm for a model call, mcp for a tool call.
        given: the id, or a prefix of it.
        output: for people, or the format for programs.

    Raises:
        ApiUseError: there is no such call, or it may not be read.
    """
    call_id = await _whole_id(client, namespace, name, kind, given)
    path = run_path(namespace, name, f"trace/{kind}/{call_id}")
    if kind == "llm":
        model_call = await read_as(client, ModelCallDetails, path, READ_TRACE)
        shown, call = model_call_block(model_call), model_call
    else:
        tool_call = await read_as(client, ToolCallDetails, path, READ_TRACE)
        shown, call = tool_call_block(tool_call), tool_call  # type: ignore[assignment]
    if for_programs(output):
        write_output(call, output)
    else:
        printer().print(shown)
    return 0


def listed(trace: TraceView, *, wide: bool = False) -> RenderableType:
    """Renders the calls by stage and agent, in the order of their start."""
    length = 36 if wide else _id_length(trace)
    blocks: list[RenderableType] = []
    for stage in trace.stages:
        for agent in stage.agents:
            blocks.append(_head(stage, agent))
            table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
            table.add_column(no_wrap=True)
            table.add_column(no_wrap=True)
            table.add_column(overflow="fold", ratio=1)
            table.add_column(justify="right", no_wrap=True)
            table.add_column(no_wrap=True)
            for call in sorted((*agent.llm, *agent.mcp), key=lambda one: (one.started_at, str(one.id))):
                table.add_row(*_row(call, trace.started_at, length))
            blocks.append(Indented(table, 2))
        if stage.acted is not None:
            blocks += [Indented(line, 2) for line in action_lines(stage.acted)]
    if not blocks:
        return Text(f"{trace.investigation.namespace}/{trace.investigation.name} has called nothing yet.")
    hint = Text("`--llm ID` and `--mcp ID` show one call; the beginning of an ID is enough.", style="dim")
    return Group(*blocks, hint)


def model_call_block(call: ModelCallDetails) -> RenderableType:
    """Renders a model call: the exact request and the response."""
    owner = f"{plain(call.owner.stage)}/{plain(call.owner.agent)}"
    question = f", for the question {call.owner.chat_message}" if call.owner.chat_message else ""
    lines: list[RenderableType] = [
        Text(f"Model call {call.number} of {owner}{question}: {plain(call.kind).replace('_', ' ')}", style="bold"),
        Text(
            f"{plain(call.model)} of {call.provider}, {call.strategy}  {_state(call)}  {_spent(call.spent)}",
            style="dim",
        ),
    ]
    if call.failure is not None:
        lines.append(Text(f"{plain(call.failure.reason)}: {plain(call.failure.message)}", style="red"))
    if call.tools:
        lines.append(Text(f"Tools: {', '.join(plain(tool.name) for tool in call.tools)}", style="dim"))
    for message in call.messages:
        lines += _message(message)
    if call.thinking:
        lines += [Text("\nthinking", style="bold magenta"), _indented(call.thinking)]
    if call.answer is not None:
        lines += _message(call.answer, answer=True)
    else:
        lines.append(Text("\nthere was no answer", style="bold red"))
    return Group(*lines)


def tool_call_block(call: ToolCallDetails) -> RenderableType:
    """Renders a tool call: its arguments and its result, as stored."""
    owner = f"{plain(call.owner.stage)}/{plain(call.owner.agent)}"
    lines: list[RenderableType] = [
        Text(f"{plain(call.server)}.{plain(call.tool)} for {owner}", style="bold"),
        Text(f"call {one_line(call.call_id, 100)}  {_state(call)}  {plain(call.access)}", style="dim"),
    ]
    lines += [Text(note, style="yellow") for note in _notes(call)]
    lines += [Text("\narguments", style="bold"), _indented(_as_json(call.arguments))]
    lines.append(Text("\nresult", style="bold"))
    lines.append(_indented(call.result) if call.result is not None else Text("  there is none", style="red"))
    return Group(*lines)


async def read_trace(client: TarsyClient, namespace: str, name: str, question: str | None = None) -> TraceView:
    """Reads all pages of a trace.

    Args:
        client: the API.
        namespace: the namespace of the investigation.
        name: the name of the investigation.
        question: the ChatMessage whose calls are read; None: those of the investigation.

    Raises:
        ApiUseError: the investigation is not on record, or may not be read.
    """
    asked = {"limit": _PAGE, **({"chatMessage": question} if question else {})}
    path, query = run_path(namespace, name, "trace"), dict(asked)
    whole: TraceView | None = None
    while True:
        page = await read_as(client, TraceView, path, READ_TRACE, query)
        whole = page if whole is None else _joined(whole, page)
        if not page.next:
            return whole
        query = {**asked, "continue": page.next}


def _joined(first: TraceView, second: TraceView) -> TraceView:
    """Joins two pages of a trace: the stages of the later one with the calls of both."""
    before = {agent.id: agent for stage in first.stages for agent in stage.agents}

    def with_earlier(agent: AgentTrace) -> AgentTrace:
        known = before.get(agent.id)
        if known is None:
            return agent
        return agent.model_copy(update={"llm": (*known.llm, *agent.llm), "mcp": (*known.mcp, *agent.mcp)})

    stages = tuple(
        stage.model_copy(update={"agents": tuple(with_earlier(agent) for agent in stage.agents)})
        for stage in second.stages
    )
    return second.model_copy(update={"stages": stages})


async def _whole_id(client: TarsyClient, namespace: str, name: str, kind: _Kind, given: str) -> UUID:
    try:
        return UUID(given)
    except ValueError:
        pass
    wanted = given.lower()
    found: set[UUID] = set()
    for question in (None, *await client.questions(namespace, name)):
        try:
            trace = await read_trace(client, namespace, name, question)
        except ApiUseError as error:
            if question is None or error.status != 404:
                raise
            continue
        calls = _calls(trace, kind)
        found |= {call.id for call in calls if str(call.id).startswith(wanted)}
        if found:
            break
    if len(found) == 1:
        return found.pop()
    what = "model call" if kind == "llm" else "tool call"
    if not found:
        raise ApiUseError(f"{namespace}/{name} has no {what} whose id begins with {one_line(given, 40)}")
    raise ApiUseError(f"{len(found)} {what}s of {namespace}/{name} have ids that begin with {one_line(given, 40)}")


def _calls(trace: TraceView, kind: _Kind) -> Iterable[CallView]:
    for stage in trace.stages:
        for agent in stage.agents:
            yield from agent.llm if kind == "llm" else agent.mcp


def _id_length(trace: TraceView) -> int:
    """Returns the length of prefixes that distinguish the ids, at least 8."""
    ids = [str(call.id) for calls in (_calls(trace, "llm"), _calls(trace, "mcp")) for call in calls]
    length = SHORTEST_ID
    while length < 36 and len({one[:length] for one in ids}) < len(ids):
        length += 1
    return length


def _head(stage: StageTrace, agent: AgentTrace) -> Text:
    parent = next((one.name for one in stage.agents if one.id == agent.parent), None)
    where = "/".join(plain(part) for part in (stage.name, parent, agent.name) if part)
    head = Text(where, style="bold")
    model = f"{plain(agent.model)} of {agent.provider}, {agent.strategy}  {_spent(agent.spent)}"
    head.append(f"  {model if agent.model else agent.strategy}  ", style="dim")  # no model reads the changes
    head.append(word(agent.state), style="green" if agent.state is State.COMPLETED else "yellow")
    return head


def _row(call: CallView, began: datetime | None, length: int) -> tuple[Text, ...]:
    after = (call.started_at - began).total_seconds() if began else 0.0
    match call:
        case ModelCallView():
            what = Text(f"model  {plain(call.kind).replace('_', ' ')}", style="cyan")
            if call.failure:
                what.append(f"  {one_line(call.failure.reason, _REASON)}", style="red")
            option, spent = "--llm", _spent(call.spent)
        case ToolCallView():
            what = Text(f"tool   {plain(call.server)}.{plain(call.tool)}", style="yellow")
            for note in _notes(call):
                what.append(f"  {note}", style="red")
            option, spent = "--mcp", ""
        case _:
            what, option, spent = Text("call"), "", ""
    return (
        Text(f"+{after:.1f}s", style="dim"),
        Text(_took(call), style="" if call.state is InteractionState.COMPLETED else "red"),
        what,
        Text(spent, style="dim"),
        Text(f"{option} {str(call.id)[:length]}", style="dim"),
    )


def _took(call: CallView) -> str:
    if call.state is not InteractionState.COMPLETED:
        return word(call.state)
    return "" if call.duration_ms is None else f"{call.duration_ms / 1000:.1f}s"


def _state(call: CallView) -> str:
    begun = f"{call.started_at.astimezone(UTC):%Y-%m-%d %H:%M:%S}Z"
    took = f", {call.duration_ms / 1000:.1f} s" if call.duration_ms is not None else ""
    return f"{word(call.state)}{took}, {begun}"


def _notes(call: ToolCallView) -> Iterator[str]:
    if call.refused:
        yield f"refused: {one_line(call.refused, _REASON)}"
    elif call.repeated_of:
        yield f"answered again with the result of {call.repeated_of}"
    elif not call.made:
        yield "not made"
    if call.rung:
        yield rung_text(str(call.rung), call.cassette_line)
    if call.attempt:
        yield f"try {call.attempt + 1}"


def _spent(spent: Spent | None) -> str:
    if spent is None:
        return "tokens unknown"
    least = "" if spent.usage_complete else "≥ "
    text = f"{least}{spent.input_tokens:,} in, {least}{spent.output_tokens:,} out"
    if spent.cost_usd is None:
        return text
    return f"{text}, ${spent.cost_usd:,.4f}" + ("" if spent.cost_complete else "+")


def _message(message: MessageView, *, answer: bool = False) -> Iterator[RenderableType]:
    name = f" of {plain(message.tool_name)}" if message.tool_name else ""
    call_id = f"  {one_line(message.tool_call_id, 100)}" if message.tool_call_id else ""
    title = "\nanswer" if answer else f"\n{message.role.value}{name}{call_id}"
    yield Text(title, style="bold green" if answer else "bold")
    if message.content:
        yield _indented(message.content)
    for use in message.tool_calls:
        text = f"calls {plain(use.name)} {one_line(use.arguments, 10_000)}  {one_line(use.id, 100)}"
        yield Indented(Text(text, style="yellow"), 2)


def _indented(text: str) -> Indented:
    return Indented(Text(plain(text)), 2)


def _as_json(text: str) -> str:
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except ValueError:
        return text
