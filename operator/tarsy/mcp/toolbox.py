"""Serves the tool calls of one agent execution; every failure becomes a result for the model.

A call that may have reached the server is repeated only if its tool is known to be repeatable; otherwise the model gets
the result that the outcome is unknown. Every text of a server passes `_answer`, the one place where results are masked;
descriptions that servers give of themselves pass `_plainly`.
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

from tarsy.masking import InvalidPattern, MaskingOutcome, masking_size, off_loop, without_secrets_or_withheld
from tarsy.mcp.agent_tools import Offers, split
from tarsy.mcp.arguments.cascade import is_sendable, parse_arguments
from tarsy.mcp.connection import HostResolver, Policy, ReachableHosts
from tarsy.mcp.errors import ConnectionLost, McpError, in_our_words
from tarsy.mcp.namespace_binding import OutOfReach, hold_to_namespaces
from tarsy.mcp.result_marks import result_marks
from tarsy.mcp.result_text import render
from tarsy.mcp.schema import ArgumentSchema, compiled
from tarsy.mcp.server import ToolServer
from tarsy.mcp.service_account_auth import ClusterOf, Tokens
from tarsy.plan.destinations import Destinations
from tarsy.plan.model import MaskingPlan, ServerPlan, StdioTransport
from tarsy.record.integrity import EvidenceMarks
from tarsy.record.messages import Access, Refusal, ToolDefinition, ToolOutcome

_BACKOFF = (0.25, 0.75)
_log = logging.getLogger(__name__)
_Mask = Callable[[str], str]
MaskOf = Callable[[MaskingPlan], _Mask]
_WITHHELD = "The answer could not be searched for secrets and is withheld. Ask for less of it, or for something else."
_WITHHELD_ARGUMENTS = '{"withheld": "could not be searched for secrets"}'
_WITHHELD_WORDS = "What it says could not be searched for secrets and is withheld."


class McpToolbox:
    """The tools of one agent (`tarsy.engine.ports.Toolbox`).

    Args:
        servers: The opened servers by name.
        unavailable: A sentence for each server that could not be opened, by name.
        mask: Masks secrets in results; a result that it cannot mask is withheld (fail closed).
        masks: Maskers of servers with their own setting, by name.
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
        """The tools that may be called, sorted by server and name."""
        return tuple(self._offers.tools.values())

    @property
    def unavailable(self) -> Mapping[str, str]:
        """A sentence by server that could not be opened, has no tool for this agent, or became unavailable."""
        away = {name: server.away for name, server in self._servers.items() if server.away is not None}
        return {**{name: self._plainly(name, sentence) for name, sentence in away.items()}, **self._unavailable}

    @property
    def instructions(self) -> Mapping[str, str]:
        """Instructions that servers send for their use, by name of server."""
        told = {name: server.instructions for name, server in self._servers.items() if server.instructions}
        return {name: self._plainly(name, text) for name, text in told.items()}

    def split(self, name: str) -> tuple[str, str]:
        """Splits `server.tool` or `server__tool`; returns ("", name) for other names."""
        return split(name)

    @property
    def digests(self) -> Mapping[str, Mapping[str, str]]:
        """Digests of all tools by server, whether or not this agent may call them."""
        return self._offers.digests

    @property
    def unaccepted(self) -> Mapping[str, Sequence[str]]:
        """Tools by server that are withheld because nobody accepted their definition."""
        return self._offers.unaccepted

    def hold(self, pinned: Mapping[str, Mapping[str, str]]) -> Mapping[str, Sequence[str]]:
        """Withholds tools that have changed since the run first saw them; returns those of this agent, by server.

        Args:
            pinned: The `digests` when the run first opened each server.
        """
        return self._offers.hold(pinned)

    def access(self, name: str) -> Access:
        """Returns the known effect of a tool."""
        return self._offers.access(name)

    def refusal(self, name: str) -> Refusal | None:
        """Returns the reason why an existing tool is withheld from this agent; None for other names."""
        return self._offers.refusal(name)

    def repeatable(self, name: str) -> bool:
        """Returns whether a call may be repeated if its outcome is unknown."""
        return self._offers.repeatable(name)

    def needs_approval(self, name: str) -> bool:
        """Returns whether each call of the tool needs the approval of people."""
        return self._offers.needs_approval(name)

    def shown(self, name: str, arguments: str) -> str:
        """Masks the arguments of a call, for the record and for people. Never raises."""
        server, _ = self.split(name)
        what = f"the arguments of a call of tool server {server}"
        return self._masked(server, arguments, what, _WITHHELD_ARGUMENTS).text

    async def call(self, name: str, arguments: str, *, timeout: float, idempotency_key: str) -> ToolOutcome:
        """Calls a tool. Every failure is returned as a result; only cancellation is raised.

        Args:
            name: `server.tool` or `server__tool`.
            arguments: Arguments, as the model wrote them.
            timeout: Maximum seconds, including a new session; a shorter limit of the server takes precedence.
            idempotency_key: Key that all attempts of this call share.
        """
        server_name, tool = self.split(name)
        definition = self._offers.tools.get(f"{server_name}.{tool}")
        if definition is None:
            refused = self.refusal(name)
            told = refused.sentence if refused else self._no_such_tool(name)
            return ToolOutcome(told, is_error=True, ours=True)
        parsed = parse_arguments(arguments, definition.parameters_schema)
        if not is_sendable(parsed):
            told = "The arguments contain characters or numbers that JSON cannot represent."
            return ToolOutcome(told, is_error=True, ours=True)
        server = self._servers[server_name]
        try:
            parsed = hold_to_namespaces(server.plan, tool, definition.parameters_schema, parsed)
        except OutOfReach as refused_call:
            return ToolOutcome(str(refused_call), is_error=True, ours=True)
        if wrong := self._schema(definition).faults(parsed):
            return ToolOutcome(_how_to_call(definition, wrong), is_error=True, ours=True)
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
                text = render(result)
                marks = result_marks(server.plan, tool, result, text)
                return await self._answer(server, text, is_error=result.is_error, marks=marks)
        raise AssertionError("the second attempt returns or raises")

    async def _answer(
        self, server: ToolServer, answer: str, *, is_error: bool, marks: EvidenceMarks | None = None
    ) -> ToolOutcome:
        """Redacts and masks a text of a server, and returns it as a result."""
        text = server.redact(answer)
        name = server.plan.name
        masked = partial(self._masked, name, text, f"an answer of tool server {name}", _WITHHELD)
        outcome = await off_loop(masked, masking_size(text))
        if marks is not None:
            marks = None if outcome.withheld else marks.moved(answer, outcome.text)
        return ToolOutcome(outcome.text, is_error=is_error or outcome.withheld, marks=marks)

    def _plainly(self, server: str, text: str) -> str:
        """Masks a text that a server, or its failure, gives of itself."""
        return self._masked(server, text, f"what tool server {server} says of itself", _WITHHELD_WORDS).text

    def _masked(self, server: str, text: str, what: str, notice: str) -> MaskingOutcome:
        return without_secrets_or_withheld(self._masks.get(server, self._mask), text, what, notice)

    async def _failure(self, server: ToolServer, tool: str, reason: str) -> ToolOutcome:
        return await self._answer(server, f"{server.plan.name}.{tool} failed: {reason}.", is_error=True)

    def _schema(self, definition: ToolDefinition) -> ArgumentSchema:
        if definition.name not in self._schemas:
            self._schemas[definition.name] = compiled(definition.parameters_schema)
        return self._schemas[definition.name]

    def _no_such_tool(self, name: str) -> str:
        server, _ = self.split(name)
        if server in self._unavailable:
            return f"Server {server!r} is not available: {self._unavailable[server]}"
        return self._offers.no_such_tool(name)


class McpToolboxes:
    """Opens toolboxes (`tarsy.engine.ports.Toolboxes`).

    Decision: eight arguments and no object of settings, because each caller needs the defaults of all but two or three.

    Args:
        resolve: Returns the value of a declared variable or header, read from its Secret if it names one.
        allow_stdio: Whether child processes are allowed: on one machine, not in a cluster.
        destinations: Permitted destinations of URLs.
        mask: Masks secrets in results, if `mask_of` is None.
        mask_of: Returns the masker for the setting of a server; a server with an invalid setting is not opened.
        reach: Replaces the declared transport of every server by a server in this process.
        cluster: Returns the address of the Kubernetes API, for servers with a kubeconfig.
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
        """Returns a copy for one run, whose agents authenticate as ServiceAccounts by these tokens."""
        own = copy(self)
        own._policy = replace(self._policy, tokens=tokens)
        return own

    @asynccontextmanager
    async def open(self, servers: Sequence[ServerPlan]) -> AsyncIterator[McpToolbox]:
        """Opens servers concurrently; failed ones are in `unavailable`.

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
        unavailable[server.plan.name] = error.sentence if stdio else error.ours  # a status may contain it
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
