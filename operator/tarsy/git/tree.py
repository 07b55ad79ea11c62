"""Reads commits and trees."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from tarsy.git.packet_lines import not_git

_MODES = {0o040000: "tree", 0o120000: "link", 0o160000: "module"}


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """A name in a tree, the kind of what it names, and the id of that."""

    name: bytes
    kind: Literal["file", "tree", "link", "module"]
    oid: str


def tree_of(commit: bytes) -> str:
    """Returns the id of the tree of a commit.

    Raises:
        GitProblem: it is no commit.
    """
    head, _, oid = commit.partition(b"\n")[0].partition(b" ")
    if head != b"tree" or len(oid) not in (40, 64):
        raise not_git()
    return oid.decode(errors="replace")


def tree_entries(content: bytes, id_bytes: int) -> Iterator[TreeEntry]:
    """Yields the entries of a tree.

    Args:
        content: of the tree.
        id_bytes: number of bytes of an id.

    Raises:
        GitProblem: it is no tree.
    """
    at = 0
    while at < len(content):
        space, end = content.find(b" ", at), content.find(b"\0", at)
        if not at < space < end or end + 1 + id_bytes > len(content):
            raise not_git()
        try:
            mode = int(content[at:space], 8) & 0o170000
        except ValueError:
            raise not_git() from None
        kind = _MODES.get(mode, "file")
        oid = content[end + 1 : end + 1 + id_bytes].hex()
        yield TreeEntry(content[space + 1 : end], kind, oid)  # type: ignore[arg-type]
        at = end + 1 + id_bytes
