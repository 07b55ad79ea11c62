"""The tools of one agent execution: names, arguments, calls, recovery; every failure is an answer to the model.

A call that may have reached the server is made again only when its tool is known to be repeatable; otherwise the model
is told that the outcome is unknown. Everything that came from a server passes `_answer` on its way out, the one
place where results are masked; what servers say of themselves passes `_plainly`.
"""

import asyncio
import logging
import random
import ssl
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from copy import copy
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any

from tarsy.masking import InvalidPattern, MaskingOutcome, without_secrets_or_withheld
from tarsy.mcp.agent_tools import Offers, split
from tarsy.mcp.arguments.cascade import is_sendable, parse_arguments
from tarsy.mcp.connection import HostResolver, Policy, ReachableHosts
from tarsy.mcp.errors import ConnectionLost, McpError, in_our_words
from tarsy.mcp.namespace_binding import OutOfReach, hold_to_namespaces
from tarsy.mcp.result_text import render
from tarsy.mcp.schema import ArgumentSchema
from tarsy.mcp.server import ToolServer
from tarsy.mcp.service_account_auth import ClusterOf, Tokens
from tarsy.plan.destinations import Destinations
from tarsy.plan.model import MaskingPlan, ServerPlan, StdioTransport
from tarsy.record.messages import Access, Refusal, ToolDefinition, ToolOutcome

_BACKOFF = (0.25, 0.75)
_log = logging.getLogger(__name__)
_Mask = Callable[[str], str]
MaskOf = Callable[[MaskingPlan], _Mask]
_LARGE = 65_536  # characters from which on masking would hold up the event loop
_WITHHELD = "The answer could not be searched for secrets and is withheld. Ask for less of it, or for something else."
_WITHHELD_ARGUMENTS = '{"withheld": "could not be searched for secrets"}'
_WITHHELD_WORDS = "What it says could not be searched for secrets and is withheld."


class McpToolbox:
    """The tools that one agent may call (`tarsy.engine.ports.Toolbox`).

    Args:
        servers: The opened servers by name.
        unavailable: A sentence for each server that could not be opened.
        mask: Takes secrets out of every answer; an answer that it cannot mask is withheld (fail closed, DESIGN 6).
        masks: The same by name of server, for those that have their own.
    """

    def __init__(
        self,
        servers: Mapping[str, ToolServer],
        unavailable: Mapping[str, str],
        mask: _Mask,
        masks: Mapping[str, _Mask] = MappingProxyType({}),
    ) -> None:
        self._servers = servers
        self._mask = mask
        self._masks = masks
        self._unavailable = {name: self._plainly(name, sentence) for name, sentence in unavailable.items()}
        self._offers = Offers({name: (server.plan, server.offer) for name, server in servers.items()})
        self._unavailable |= self._offers.empty
        self._schemas: dict[str, ArgumentSchema] = {}

    @property
    def tools(self) -> Sequence[ToolDefinition]:
        """All tools that may be called, ordered by name of server, then of tool."""
        return tuple(self._offers.tools.values())

    @property
    def unavailable(self) -> Mapping[str, str]:
        """Servers that could not be opened, have nothing for this agent, or went away since, with a sentence each."""
        away = {name: server.away for name, server in self._servers.items() if server.away is not None}
        return {**{name: self._plainly(name, sentence) for name, sentence in away.items()}, **self._unavailable}

    @property
    def instructions(self) -> Mapping[str, str]:
        """What servers themselves say about their use, by name of server."""
        told = {name: server.instructions for name, server in self._servers.items() if server.instructions}
        return {name: self._plainly(name, text) for name, text in told.items()}

    def split(self, name: str) -> tuple[str, str]:
        """`server.tool` (or `server__tool`) taken apart; ("", name) when it is neither."""
        return split(name)

    @property
    def digests(self) -> Mapping[str, Mapping[str, str]]:
        """A digest of each tool of each server, whether this agent may call it or not."""
        return self._offers.digests

    def hold(self, pinned: Mapping[str, Mapping[str, str]]) -> Mapping[str, Sequence[str]]:
        """Keeps back what is not as the run first saw it; which of this agent's tools that is, by server.

        Args:
            pinned: What `digests` was when the run first opened each server.
        """
        return self._offers.hold(pinned)

    def access(self, name: str) -> Access:
        """What a tool does, as far as that is known."""
        return self._offers.access(name)

    def refusal(self, name: str) -> Refusal | None:
        """Why a tool that its server has is not called for this agent; None when it is, or when there is none such."""
        return self._offers.refusal(name)

    def repeatable(self, name: str) -> bool:
        """Whether the call may be made again when its outcome is unknown."""
        return self._offers.repeatable(name)

    def shown(self, name: str, arguments: str) -> str:
        """A call's arguments without secrets, as record and people see them; never raises."""
        server, _ = self.split(name)
        what = f"the arguments of a call of tool server {server}"
        return self._masked(server, arguments, what, _WITHHELD_ARGUMENTS).text

    async def call(self, name: str, arguments: str, *, timeout: float, idempotency_key: str) -> ToolOutcome:
        """Calls a tool; whatever goes wrong is an answer, only cancellation is raised.

        Args:
            name: `server.tool` or `server__tool`.
            arguments: What the model wrote.
            timeout: Seconds for all of it, a new session included; the server's own limit when that is shorter.
            idempotency_key: The same for each attempt at this call.
        """
        server_name, tool = self.split(name)
        definition = self._offers.tools.get(f"{server_name}.{tool}")
        if definition is None:
            refused = self.refusal(name)
            return ToolOutcome(refused.sentence if refused else self._no_such_tool(name), is_error=True)
        parsed = parse_arguments(arguments, definition.parameters_schema)
        if not is_sendable(parsed):
            return ToolOutcome("The arguments contain characters or numbers that JSON cannot represent.", is_error=True)
        server = self._servers[server_name]
        try:
            parsed = hold_to_namespaces(server.plan, tool, definition.parameters_schema, parsed)
        except OutOfReach as refused_call:
            return ToolOutcome(str(refused_call), is_error=True)
        if wrong := self._schema(definition).faults(parsed):
            return ToolOutcome(_how_to_call(definition, wrong), is_error=True)
        limit = min(timeout, server.plan.call_seconds or timeout)
        try:
            async with asyncio.timeout(limit) as clock:
                return await self._attempts(server, tool, parsed, idempotency_key)
        except TimeoutError:
            if not clock.expired():
                return await self._failure(server, tool, "TimeoutError inside the call")
            unknown = "" if self.repeatable(name) else "; it may have taken effect or not"
            return await self._failure(server, tool, f"no answer within {limit:g} s{unknown}")
        except McpError as error:
            return await self._failure(server, tool, error.sentence)
        except Exception as error:
            return await self._failure(server, tool, f"{type(error).__name__}: {error}")

    async def _attempts(self, server: ToolServer, tool: str, arguments: dict[str, Any], key: str) -> ToolOutcome:
        for last in (False, True):
            session = await server.live()
            if server.has_changed(tool):
                return await self._failure(server, tool, "the server has changed its description since it reconnected")
            try:
                result = await session.call(tool, arguments, idempotency_key=key)
            except ConnectionLost as error:
                session.retire()
                server.away = error.sentence
                if error.sent and tool not in server.offer.repeatable:
                    reason = f"{error.sentence}. The outcome is unknown: the call may have taken effect or not"
                    return await self._failure(server, tool, reason)
                if last:
                    raise
                await asyncio.sleep(random.uniform(*_BACKOFF))
            else:
                return await self._answer(server, render(result), is_error=result.is_error)
        raise AssertionError("the second attempt returns or raises")

    async def _answer(self, server: ToolServer, text: str, *, is_error: bool) -> ToolOutcome:
        """The one way out for what came from a server."""
        text = server.redact(text)
        name = server.plan.name
        masked = partial(self._masked, name, text, f"an answer of tool server {name}", _WITHHELD)
        outcome = await asyncio.to_thread(masked) if len(text) > _LARGE else masked()
        return ToolOutcome(outcome.text, is_error=is_error or outcome.withheld)

    def _plainly(self, server: str, text: str) -> str:
        """What a server, or its failure, says of itself: masked like its answers."""
        return self._masked(server, text, f"what tool server {server} says of itself", _WITHHELD_WORDS).text

    def _masked(self, server: str, text: str, what: str, notice: str) -> MaskingOutcome:
        return without_secrets_or_withheld(self._masks.get(server, self._mask), text, what, notice)

    async def _failure(self, server: ToolServer, tool: str, reason: str) -> ToolOutcome:
        return await self._answer(server, f"{server.plan.name}.{tool} failed: {reason}.", is_error=True)

    def _schema(self, definition: ToolDefinition) -> ArgumentSchema:
        if definition.name not in self._schemas:
            self._schemas[definition.name] = ArgumentSchema(definition.parameters_schema)
        return self._schemas[definition.name]

    def _no_such_tool(self, name: str) -> str:
        server, _ = self.split(name)
        if server in self._unavailable:
            return f"Server {server!r} is not available: {self._unavailable[server]}"
        return self._offers.no_such_tool(name)


class McpToolboxes:
    """Opens toolboxes (`tarsy.engine.ports.Toolboxes`).

    Args:
        resolve: Gives a declared environment variable or header its value, from its Secret where it stands in one.
        allow_stdio: Whether tool servers may run as child processes: on one machine, not in a cluster.
        destinations: Where URLs may lead.
        mask: Takes secrets out of every answer of servers, where `mask_of` is not given.
        mask_of: The masker for the setting of a server; a server whose setting cannot be used is not opened.
        reach: Leads to every server instead of what its object says: to servers in this process.
        cluster: Where the Kubernetes API is, for servers that get a kubeconfig.
        sdk_calls: Whether tools over streamable HTTP are called through the SDK (`tarsy.mcp.connection.Policy`).
    """

    def __init__(
        self,
        resolve: HostResolver,
        *,
        mask: _Mask,
        mask_of: MaskOf | None = None,
        allow_stdio: bool = False,
        destinations: Destinations | None = None,
        reach: ReachableHosts | None = None,
        cluster: ClusterOf | None = None,
        sdk_calls: bool = False,
    ) -> None:
        self._mask = mask
        self._mask_of = mask_of
        self._policy = Policy(
            resolve,
            ssl.create_default_context(),
            allow_stdio,
            destinations or Destinations(),
            reach,
            cluster=cluster,
            sdk_calls=sdk_calls,
        )

    def of(self, tokens: Tokens) -> "McpToolboxes":
        """The same for one run, whose agents act as ServiceAccounts by these tokens."""
        own = copy(self)
        own._policy = replace(self._policy, tokens=tokens)
        return own

    @asynccontextmanager
    async def open(self, servers: Sequence[ServerPlan]) -> AsyncIterator[McpToolbox]:
        """Opens the servers side by side; those that fail are in `unavailable`.

        Args:
            servers: The servers of one agent execution.
        """
        unavailable: dict[str, str] = {}
        masks: dict[str, _Mask] = {}
        for plan in servers:
            try:
                masks[plan.name] = self._mask_of(plan.masking) if self._mask_of else self._mask
            except InvalidPattern as error:
                unavailable[plan.name] = f"its masking cannot be used: {error.sentence}"
        made = [ToolServer(plan, self._policy) for plan in servers if plan.name not in unavailable]
        try:
            async with asyncio.TaskGroup() as group:
                for server in made:
                    group.create_task(_open(server, unavailable))
            opened = {server.plan.name: server for server in made if server.plan.name not in unavailable}
            yield McpToolbox(opened, unavailable, self._mask, masks)
        finally:
            await _close(made)


async def _open(server: ToolServer, unavailable: dict[str, str]) -> None:
    try:
        await server.live()
    except McpError as error:
        stdio = isinstance(server.plan.transport, StdioTransport)
        unavailable[server.plan.name] = error.sentence if stdio else error.ours  # a status may tell it
    except Exception as error:
        unavailable[server.plan.name] = server.redact(in_our_words(error))


async def _close(servers: Sequence[ToolServer]) -> None:
    async with asyncio.TaskGroup() as group:
        for server in servers:
            group.create_task(server.close())


def _how_to_call(definition: ToolDefinition, wrong: Sequence[str]) -> str:
    known = definition.parameters_schema.get("properties")
    names = ", ".join(sorted(known)) if isinstance(known, dict) and known else "none"
    listed = "\n".join(f"- {fault}" for fault in wrong)
    return (
        f"The arguments do not fit {definition.name}:\n{listed}\nIts parameters: {names}. Give them as a JSON object."
    )
