"""Offers the tools by which a model dispatches sub-agents, beside the tools of its servers.

They have no server. Their calls are answered by the tool loop of the agent (`requests`), never by the toolbox: once the
agent has its final answer, it refuses them.
"""

from collections.abc import Sequence

from tarsy.engine.ports import Toolbox
from tarsy.engine.prompts.fence import inline
from tarsy.engine.wrapped_toolbox import WrappedToolbox
from tarsy.plan.model import DelegationPlan
from tarsy.record.dispatch import (
    CANCEL_AGENT,
    DISPATCH_AGENT,
    DISPATCH_TOOLS,
    LIST_AGENTS,
    LONGEST_HYPOTHESIS,
    LONGEST_TASK,
)
from tarsy.record.messages import Access, Refusal, ToolDefinition, ToolOutcome

_OVER = Refusal(
    "DispatchOver", "It was not called: the final answer is given, and no sub-agent is dispatched any more."
)


def dispatch_tools(delegation: DelegationPlan) -> tuple[ToolDefinition, ...]:
    """Returns the tools of an agent that may dispatch others."""
    names = [one.agent.agent for one in delegation.agents]
    described = "\n".join(f"- {one.agent.agent}: {inline(one.description, 1024)}" for one in delegation.agents)
    dispatch = ToolDefinition(
        DISPATCH_AGENT,
        "Dispatches an agent that works on a task of its own while you go on. It returns an id at once; the agent's "
        f"conclusion comes as a message. Agents:\n{described}",
        {
            "type": "object",
            "properties": {
                "name": {"type": "string", "enum": names, "description": "Agent to dispatch."},
                "task": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": LONGEST_TASK,
                    "description": "The whole task. The agent sees nothing else: name objects, namespaces and times.",
                },
                "hypothesis": {
                    "type": "string",
                    "maxLength": LONGEST_HYPOTHESIS,
                    "description": "A statement that the agent is to support or refute with evidence.",
                },
            },
            "required": ["name", "task"],
        },
    )
    list_ = ToolDefinition(
        LIST_AGENTS,
        "Lists the agents that you can dispatch and those that you have dispatched, with their state.",
        {"type": "object", "properties": {}},
    )
    cancel = ToolDefinition(
        CANCEL_AGENT,
        "Cancels an agent that you have dispatched and whose conclusion you do not need any more.",
        {
            "type": "object",
            "properties": {"id": {"type": "string", "description": "The id that dispatch_agent returned."}},
            "required": ["id"],
        },
    )
    return dispatch, list_, cancel


class DelegatingToolbox(WrappedToolbox):
    """The toolbox of an agent that may dispatch others.

    Args:
        servers: the tools of its servers.
        delegation: the agents that it may dispatch.
    """

    def __init__(self, servers: Toolbox, delegation: DelegationPlan) -> None:
        super().__init__(servers)
        self._own = dispatch_tools(delegation)

    @property
    def tools(self) -> Sequence[ToolDefinition]:
        """Those of the servers, then its own."""
        return (*self._inner.tools, *self._own)

    def split(self, name: str) -> tuple[str, str]:
        """Splits `server.tool`; its own tools have no server."""
        return ("", name) if name in DISPATCH_TOOLS else super().split(name)

    def access(self, name: str) -> Access:
        """Returns the known effect of a tool; its own change nothing outside."""
        return Access.READ_ONLY if name in DISPATCH_TOOLS else super().access(name)

    def refusal(self, name: str) -> Refusal | None:
        """Returns the reason why a tool is not called; its own never are by the toolbox."""
        return _OVER if name in DISPATCH_TOOLS else super().refusal(name)

    def repeatable(self, name: str) -> bool:
        """Returns whether a call may be made again; a dispatch that is made again is the same one."""
        return name in DISPATCH_TOOLS or super().repeatable(name)

    def needs_approval(self, name: str) -> bool:
        """Returns whether people are asked about each call; never about its own."""
        return name not in DISPATCH_TOOLS and super().needs_approval(name)

    async def call(self, name: str, arguments: str, *, timeout: float, idempotency_key: str) -> ToolOutcome:
        """Calls a tool of a server; its own are answered by the loop, or are over."""
        if name in DISPATCH_TOOLS:
            return ToolOutcome(_OVER.sentence, is_error=True, ours=True)
        return await super().call(name, arguments, timeout=timeout, idempotency_key=idempotency_key)
