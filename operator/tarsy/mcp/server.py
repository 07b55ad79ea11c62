"""One tool server of one agent execution: its session now, the next one when that ends, and its allowed tools.

The tools are those of the first session: an agent's offer does not change in the middle of its run. A tool whose name
is not one by the specification is left out: names go into prompts as they are.
"""

import asyncio
import re
from collections.abc import Sequence
from typing import Any

from tarsy.mcp.errors import ConnectionLost
from tarsy.mcp.link import Policy
from tarsy.mcp.session import McpSession
from tarsy.plan.model import ServerPlan
from tarsy.record.messages import ToolDefinition

_REOPEN_SECONDS = 10.0
_NAME = re.compile(r"[\w./-]{1,128}", re.ASCII)


class ToolServer:
    """A tool server that is opened on first use and again when its session has ended.

    Args:
        plan: The server with what of it this agent may use.
        policy: What tool servers may be.
    """

    def __init__(self, plan: ServerPlan, policy: Policy) -> None:
        self.plan = plan
        self.instructions = ""
        self.definitions: Sequence[ToolDefinition] = ()
        self._policy = policy
        self._names: frozenset[str] = frozenset()
        self._sessions: list[McpSession] = []
        self._opening = asyncio.Lock()
        self._opened = False
        self._closed = False

    def has(self, tool: str) -> bool:
        """Whether the server offers the tool, allowed or not."""
        return tool in self._names

    def redact(self, text: str) -> str:
        """The text without the secrets that were declared for this server."""
        for session in self._sessions:
            text = session.redact(text)
        return text

    async def live(self) -> McpSession:
        """The session to call on, opened if there is none (again: reference section 1.8, re-init).

        Raises:
            McpError: It could not be opened.
        """
        async with self._opening:
            if self._closed:
                raise ConnectionLost("the agent execution it belonged to has ended")
            if self._sessions and self._sessions[-1].alive:
                return self._sessions[-1]
            limit = min(_REOPEN_SECONDS, self.plan.init_seconds) if self._opened else self.plan.init_seconds
            session = McpSession(self.plan, self._policy)
            self._sessions = [kept for kept in self._sessions if not kept.ended] + [session]
            await session.started(limit)
            if not self._opened:
                self._opened = True
                self._learn(session)
            return session

    async def close(self) -> None:
        """Ends all sessions, and waits until nothing of them is left."""
        self._closed = True
        async with asyncio.TaskGroup() as group:
            for session in self._sessions:
                group.create_task(session.close())

    def _learn(self, session: McpSession) -> None:
        tools = {tool.name: tool for tool in session.tools if _NAME.fullmatch(tool.name)}
        self._names = frozenset(tools)
        self.instructions = session.redact(session.instructions)
        self.definitions = tuple(
            ToolDefinition(f"{self.plan.name}.{name}", tools[name].description or "", _schema(tools[name].input_schema))
            for name in sorted(tools)
            if self._allowed(name)
        )

    def _allowed(self, tool: str) -> bool:
        chosen = not self.plan.selected or tool in self.plan.selected
        return chosen and (not self.plan.allow or tool in self.plan.allow) and tool not in self.plan.deny


def _schema(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {}} | schema
