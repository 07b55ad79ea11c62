"""Which `data` belongs to which `kind`: mappings of a text as a stack, fed with the few lines or keys that matter.

A text from outside is seldom one clean document, so nothing is parsed: the scanners of YAML and JSON find `kind`,
`data` and `stringData` by a regex and say how deep each lies, and this stack joins those that are members of one
mapping. What it costs grows with the number of those keys and not with the size or the depth of the text.
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
    """The open mappings, outermost first, and what of closed ones turned out to be secret."""

    def __init__(self) -> None:
        self._stack: list[_Frame[_T]] = []
        self._keys = 0
        self.secret: list[_T] = []

    def crowded(self, read: int) -> bool:
        """Whether a text has more keys in the `read` bytes so far than any text of objects has.

        Such a text is made to cost time; it is masked whole.
        """
        self._keys += 1
        return self._keys % _MANY_KEYS == 0 and read < self._keys * _BYTES_PER_KEY

    @property
    def depth(self) -> int:
        """Depth of the innermost open mapping that matters; -1 when there is none."""
        return self._stack[-1].depth if self._stack else -1

    def close(self, depth: int) -> None:
        """Everything deeper than `depth` has ended."""
        while self._stack and self._stack[-1].depth > depth:
            self._leave(self._stack.pop(), depth)

    def item(self, depth: int) -> None:
        """A new mapping begins at `depth`, the item of a list: an open one there has ended."""
        while self._stack and self._stack[-1].depth >= depth:
            self._leave(self._stack.pop(), depth - 1)

    def kind(self, depth: int, kind: bytes) -> None:
        """The mapping at `depth` is of this kind."""
        frame = self._at(depth)
        if frame.kind:
            self.item(depth)
            frame = self._at(depth)
        frame.kind = kind

    def version(self, depth: int) -> None:
        """The mapping at `depth` has an apiVersion: a second one belongs to the next object."""
        frame = self._at(depth)
        if frame.versioned:
            self.item(depth)
            frame = self._at(depth)
        frame.versioned = True

    def data(self, depth: int, name: bytes, place: _T) -> None:
        """The mapping at `depth` has data (`name` is data or stringData)."""
        frame = self._at(depth)
        if name in frame.names:
            self.item(depth)
            frame = self._at(depth)
        frame.names.add(name)
        frame.own.append(place)

    def end(self) -> list[_T]:
        """The text has ended: the data of all Secrets."""
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
        """Data of a mapping of no kind may be an item of the SecretList around it."""
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
