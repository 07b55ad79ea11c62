"""Finds the `data` that belongs to a `kind: Secret`, with a stack of the open mappings of a text.

Untrusted text is seldom one valid document, so nothing is parsed: the scanners of YAML and JSON find `kind`, `data` and
`stringData` by a regex, with their depth, and this stack joins the members of one mapping. Its cost grows with the
number of these keys, not with the size or depth of the text.
"""

from dataclasses import dataclass, field
from typing import Generic, TypeVar

TAG = b"[MASKED_SECRET_DATA]"
SECRET = b"Secret"
SECRET_LIST = b"SecretList"

_MANY_KEYS = 5_000
_BYTES_PER_KEY = 24

_T = TypeVar("_T")


@dataclass(slots=True)
class _Frame(Generic[_T]):
    depth: int
    kind: bytes = b""
    versioned: bool = False
    own: list[_T] = field(default_factory=list)
    names: set[bytes] = field(default_factory=set)
    inner: list["list[_T]"] = field(default_factory=list)


class Frames(Generic[_T]):
    """The stack of open mappings, and the secret data of closed ones."""

    def __init__(self) -> None:
        self._stack: list[_Frame[_T]] = []
        self._keys = 0
        self.secret: list[_T] = []

    def crowded(self, read: int) -> bool:
        """Returns whether a text is hostile: more keys in the `read` bytes so far than any manifest has.

        Such a text is masked whole.
        """
        self._keys += 1
        return self._keys % _MANY_KEYS == 0 and read < self._keys * _BYTES_PER_KEY

    @property
    def depth(self) -> int:
        """Depth of the innermost open mapping; -1 without one."""
        return self._stack[-1].depth if self._stack else -1

    def close(self, depth: int) -> None:
        """Closes all mappings deeper than `depth`."""
        while self._stack and self._stack[-1].depth > depth:
            self._leave(self._stack.pop(), depth)

    def item(self, depth: int) -> None:
        """Starts a list item at `depth`: closes an open mapping of the same depth."""
        while self._stack and self._stack[-1].depth >= depth:
            self._leave(self._stack.pop(), depth - 1)

    def kind(self, depth: int, kind: bytes) -> None:
        """Sets the kind of the mapping at `depth`."""
        frame = self._at(depth)
        if frame.kind:
            self.item(depth)
            frame = self._at(depth)
        frame.kind = kind

    def version(self, depth: int) -> None:
        """Notes an apiVersion of the mapping at `depth`; a second one starts the next object."""
        frame = self._at(depth)
        if frame.versioned:
            self.item(depth)
            frame = self._at(depth)
        frame.versioned = True

    def data(self, depth: int, name: bytes, place: _T) -> None:
        """Adds data to the mapping at `depth`.

        Args:
            depth: Depth of the mapping.
            name: data or stringData.
            place: Position of the data in the text.
        """
        frame = self._at(depth)
        if name in frame.names:
            self.item(depth)
            frame = self._at(depth)
        frame.names.add(name)
        frame.own.append(place)

    def end(self) -> list[_T]:
        """Closes all mappings, and returns the data of all Secrets."""
        self.item(-1)
        while self._stack:
            self._leave(self._stack.pop(), -1)
        return self.secret

    def _at(self, depth: int) -> _Frame[_T]:
        self.close(depth)
        if not self._stack or self._stack[-1].depth < depth:
            self._stack.append(_Frame(depth))
        return self._stack[-1]

    def _leave(self, frame: _Frame[_T], depth: int) -> None:
        if frame.kind in (SECRET, SECRET_LIST):
            self.secret.extend(frame.own)
        if frame.kind == SECRET_LIST:
            for group in frame.inner:
                self.secret.extend(group)
        elif not frame.kind:
            self._hand_up([*frame.inner, frame.own] if frame.own else frame.inner, depth)

    def _hand_up(self, groups: "list[list[_T]]", depth: int) -> None:
        """Passes data of a mapping without kind to the outer mapping, which may be a SecretList."""
        if not groups:
            return
        if not self._stack:
            if depth < 0:
                return
            self._stack.append(_Frame(depth))
        outer = self._stack[-1]
        if len(groups) > len(outer.inner):
            groups, outer.inner = outer.inner, groups
        outer.inner.extend(groups)
