"""One tool server of one agent execution: its session now, the next one when that ends, and what it offers.

The tools are those of the first session: an agent's offer does not change in the middle of its run. One that a later
session describes in another way is not called any more.
"""

import asyncio
from collections.abc import Mapping

from tarsy.mcp.connection import Policy
from tarsy.mcp.errors import ConnectionLost, McpError
from tarsy.mcp.session import McpSession
from tarsy.mcp.tool_catalog import Offer, digests_of, offer
from tarsy.plan.model import ServerPlan

REOPEN_SECONDS = 10.0
"""How long a session that ended may take to be opened again (reference section 1.8, re-init)."""


class ToolServer:
    """A tool server that is opened on first use and again when its session has ended.

    Args:
        plan: The server with what of it this agent may use.
        policy: What tool servers may be.

    `away` says why it does not answer now, although it was opened; None when it does, as far as is known.
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
        """Whether the session now has the tool in another form than the first one, or not any more."""
        return self._digests.get(tool) != self.offer.digests.get(tool)

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
        """Ends all sessions, and waits until nothing of them is left."""
        self._closed = True
        async with asyncio.TaskGroup() as group:
            for session in self._sessions:
                group.create_task(session.close())
