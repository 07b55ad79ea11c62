"""Forwards all calls to another toolbox; subclasses override some of them."""

from collections.abc import Mapping, Sequence

from tarsy.engine.ports import Toolbox
from tarsy.record.messages import Access, Refusal, ToolDefinition, ToolOutcome


class WrappedToolbox:
    """A toolbox around another one (`tarsy.engine.ports.Toolbox`, which says what each member is for).

    Args:
        inner: answers what a subclass does not.
    """

    def __init__(self, inner: Toolbox) -> None:
        self._inner = inner

    @property
    def tools(self) -> Sequence[ToolDefinition]:
        """Returns all tools that may be called."""
        return self._inner.tools

    @property
    def unavailable(self) -> Mapping[str, str]:
        """Servers that could not be opened, with a sentence each."""
        return self._inner.unavailable

    @property
    def instructions(self) -> Mapping[str, str]:
        """Instructions that servers give for their own use."""
        return self._inner.instructions

    @property
    def digests(self) -> Mapping[str, Mapping[str, str]]:
        """A digest of each tool of each server."""
        return self._inner.digests

    @property
    def unaccepted(self) -> Mapping[str, Sequence[str]]:
        """Tools by server that nobody accepted."""
        return self._inner.unaccepted

    def split(self, name: str) -> tuple[str, str]:
        """Splits `server.tool`."""
        return self._inner.split(name)

    def hold(self, pinned: Mapping[str, Mapping[str, str]]) -> Mapping[str, Sequence[str]]:
        """Withholds tools that differ from `pinned`."""
        return self._inner.hold(pinned)

    def access(self, name: str) -> Access:
        """Returns the known effect of a tool."""
        return self._inner.access(name)

    def refusal(self, name: str) -> Refusal | None:
        """Returns the reason why a tool is withheld."""
        return self._inner.refusal(name)

    def repeatable(self, name: str) -> bool:
        """Returns whether a call may be made again when its outcome is unknown."""
        return self._inner.repeatable(name)

    def needs_approval(self, name: str) -> bool:
        """Returns whether each call of a tool needs the approval of people."""
        return self._inner.needs_approval(name)

    def shown(self, name: str, arguments: str) -> str:
        """Returns the arguments of a call without secrets."""
        return self._inner.shown(name, arguments)

    async def call(self, name: str, arguments: str, *, timeout: float, idempotency_key: str) -> ToolOutcome:
        """Calls a tool.

        Args:
            name: `server.tool`.
            arguments: as the model wrote them.
            timeout: seconds for the whole call.
            idempotency_key: the same for each attempt at this call.
        """
        return await self._inner.call(name, arguments, timeout=timeout, idempotency_key=idempotency_key)
