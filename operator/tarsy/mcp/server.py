"""Manages the sessions of one tool server for one agent execution.

A session that has ended is opened again. The tools are those of the first session, so the tools of an agent do not
change during its execution; a tool that a later session describes differently is not called any more.
"""

import asyncio
from collections.abc import Mapping

from tarsy.mcp.connection import Policy
from tarsy.mcp.errors import ConnectionLost, McpError
from tarsy.mcp.session import McpSession
from tarsy.mcp.tool_catalog import Offer, digests_of, offer
from tarsy.plan.model import ServerPlan

REOPEN_SECONDS = 10.0
"""Maximum seconds to open an ended session again."""


class ToolServer:
    """A tool server that is opened on first use, and again after its session has ended.

    Args:
        plan: The server, with the tools that this agent may use.
        policy: Permissions and dependencies of the connection.

    `away` is the reason why the opened server is unavailable now; None if it is not known to be.
    """

    def __init__(self, plan: ServerPlan, policy: Policy) -> None:
        self.plan = plan
        self.instructions = ""
        self.away: str | None = None
        self.offer = Offer()
        self._policy = policy
        self._digests: Mapping[str, str] = {}
        self._sessions: list[McpSession] = []
        self._opening = asyncio.Lock()
        self._opened = False
        self._closed = False

    def has_changed(self, tool: str) -> bool:
        """Returns whether the current session lacks the tool, or describes it differently than the first one."""
        return self._digests.get(tool) != self.offer.digests.get(tool)

    def redact(self, text: str) -> str:
        """Replaces the declared secrets of this server in a text."""
        for session in self._sessions:
            text = session.redact(text)
        return text

    async def live(self) -> McpSession:
        """Returns the live session, opened (again) if there is none.

        Raises:
            McpError: The session could not be opened.
        """
        async with self._opening:
            if self._closed:
                raise ConnectionLost("the agent execution it belonged to has ended")
            if self._sessions and self._sessions[-1].alive:
                return self._sessions[-1]
            limit = min(REOPEN_SECONDS, self.plan.init_seconds) if self._opened else self.plan.init_seconds
            session = McpSession(self.plan, self._policy)
            self._sessions = [kept for kept in self._sessions if not kept.ended] + [session]
            try:
                await session.started(limit)
            except McpError as error:
                self.away = error.sentence
                raise
            self.away = None
            if self._opened:
                self._digests = digests_of(session.tools)
                return session
            self._opened = True
            self.instructions = session.redact(session.instructions)
            self.offer = offer(self.plan, session.tools)
            self._digests = self.offer.digests
            return session

    async def close(self) -> None:
        """Ends all sessions, and waits for their end."""
        self._closed = True
        async with asyncio.TaskGroup() as group:
            for session in self._sessions:
                group.create_task(session.close())
