"""Shows the tools of an MCPServer with `spec.pin`, and accepts them (`tools SERVER`, `accept-tools SERVER`).

Decision: people accept the digests of what they were shown. What the server changes in between has another one, and
is not accepted unseen.
"""

import json
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from difflib import unified_diff

from tarsy.cli.output import Output, for_programs, print_lines, printer, write_output
from tarsy.client.api import TarsyClient, read_as
from tarsy.client.errors import ApiUseError
from tarsy.client.plain_text import one_line, revealed
from tarsy.client.refusals import READ_TOOLS
from tarsy.http.views.server_tools import DefinitionView, ServerToolsView, ServerToolView

WAITING = ("Changed", "New")
_PARTS = ("name", "description", "parameters", "annotations", "namespaces")


async def show_tools(client: TarsyClient, namespace: str, name: str, output: Output) -> int:
    """Prints the tools of a server, and what changed; returns the exit status.

    Args:
        client: the API.
        namespace: the namespace of the MCPServer.
        name: the name of the MCPServer.
        output: for people, or the format for programs.

    Returns:
        0: no tool waits to be accepted. 1: some do.

    Raises:
        ApiUseError: the MCPServer does not exist, or may not be read.
    """
    found = await _read(client, namespace, name)
    if for_programs(output):
        write_output(found, output)
    else:
        print_lines(tool_lines(found, {tool.name for tool in found.tools if tool.state in WAITING}))
    return int(any(tool.state in WAITING for tool in found.tools))


async def accept_shown_tools(
    client: TarsyClient,
    namespace: str,
    name: str,
    output: Output,
    *,
    tools: Sequence[str],
    reason: str | None,
    confirm: bool,
) -> int:
    """Prints what changed and accepts it; returns the exit status.

    Args:
        client: the API.
        namespace: the namespace of the MCPServer.
        name: the name of the MCPServer.
        output: for people, or the format for programs.
        tools: names of the tools to accept; empty: all that wait.
        reason: the reason, for others.
        confirm: whether the user is asked first.

    Returns:
        0: accepted, or nothing waits. 1: the user did not confirm.

    Raises:
        ApiUseError: a tool is not there, or the user may not accept tools of this server.
    """
    found = await _read(client, namespace, name)
    if found.pin is None:
        raise ApiUseError(f"MCPServer {namespace}/{name} has no spec.pin: its tools need not be accepted")
    chosen = _chosen(found, tools)
    if not chosen:
        printer().print(f"mcpserver.tarsy.dev/{name}: no tool waits to be accepted")
        return 0
    if not for_programs(output):
        print_lines(tool_lines(found, {tool.name for tool in chosen}))
    if confirm and not _confirmed(f"Accept {len(chosen)} tools of {name} as shown?"):
        return 1
    digests = {tool.name: tool.now.digest for tool in chosen if tool.now is not None}
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    entry = {"at": now, **({"reason": reason} if reason else {})}
    username = await client.accept(namespace, name, digests, entry)
    if for_programs(output):
        write_output({"namespace": namespace, "name": name, "username": username, "tools": digests}, output)
    else:
        text = f"mcpserver.tarsy.dev/{name}: accepted {len(digests)} tools as {username}"
        printer().print(text, markup=False, soft_wrap=True)
        printer().print("The condition ToolsChanged shows within a minute whether the acceptance counts.")
    return 0


def tool_lines(found: ServerToolsView, detailed: Collection[str]) -> list[str]:
    """Returns the lines for people: a table, then the definitions of some tools as they changed.

    Args:
        found: the tools.
        detailed: names of the tools whose definitions are shown.
    """
    head = f"MCPServer {found.name}: pin {found.pin or 'not set'}"
    lines = [head, *([f"  {one_line(found.message, 1000)}"] if found.message else [])]
    lines += [
        f"  {tool.state:<8} {revealed(tool.name)}  {tool.now.digest[:16] if tool.now is not None else ''}".rstrip()
        for tool in found.tools
    ]
    for tool in found.tools:
        if tool.name in detailed:
            lines += ["", f"{revealed(tool.name)}: {tool.state.lower()}", *_changes(tool)]
    return lines


def _changes(tool: ServerToolView) -> list[str]:
    now, before = _text(tool.now), _text(tool.before)
    if not before:
        return [f"  {line}" for line in now]
    marked = unified_diff(before, now, "before", "now", n=2, lineterm="")
    return [f"  {line}" for line in marked] or ["  The texts do not differ; parts that are masked or cut may."]


def _text(one: DefinitionView | None) -> list[str]:
    """Returns a definition in lines, with invisible characters shown by their code."""
    if one is None:
        return []
    if one.definition is None:
        return [f"(the definition with digest {one.digest[:16]} is not known)"]
    try:
        parts = json.loads(one.definition)
    except ValueError:
        return [revealed(line) for line in one.definition.splitlines()]
    lines: list[str] = []
    for label, part in zip(_PARTS, parts, strict=False):
        text = part if isinstance(part, str) else json.dumps(part, indent=2, ensure_ascii=False, sort_keys=True)
        lines += [f"{label}: {revealed(text)}"] if "\n" not in text else [f"{label}:"]
        lines += [f"  {revealed(line)}" for line in text.split("\n")] if "\n" in text else []
    return lines


def _chosen(found: ServerToolsView, tools: Sequence[str]) -> list[ServerToolView]:
    there = {tool.name: tool for tool in found.tools}
    for name in tools:
        tool = there.get(name)
        if tool is None or tool.now is None:
            waiting = ", ".join(tool.name for tool in found.tools if tool.state in WAITING) or "none"
            raise ApiUseError(f"MCPServer {found.name} lists no tool {one_line(name, 128)}; waiting: {waiting}")
    named = [there[name] for name in dict.fromkeys(tools)] if tools else list(found.tools)
    return [tool for tool in named if tool.state in WAITING]


async def _read(client: TarsyClient, namespace: str, name: str) -> ServerToolsView:
    return await read_as(client, ServerToolsView, f"/namespaces/{namespace}/mcpservers/{name}/tools", READ_TOOLS)


def _confirmed(question: str) -> bool:
    import typer

    return typer.confirm(question)
