"""Reads packs: the objects of a response, each found by its hash.

Decision: nothing is kept unpacked. The first pass hashes each object and notes where it begins; an object that is asked
for is unpacked again. So memory is bounded by the size of the response and of one chain of objects.
"""

import hashlib
import zlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tarsy.git.packet_lines import not_git
from tarsy.git.source import GitLimits, GitProblem

_KINDS: Final = {1: "commit", 2: "tree", 3: "blob", 4: "tag"}
_OFFSET_DELTA, _DELTA = 6, 7
_CHUNK = 16_384
_DEEPEST = 256


@dataclass(frozen=True, slots=True)
class GitObject:
    """One object: `commit`, `tree`, `blob` or `tag`, and its content."""

    kind: str
    content: bytes


@dataclass(frozen=True, slots=True)
class _Entry:
    kind: str | None
    size: int
    begin: int
    base: str | None = None


def object_id(kind: str, content: bytes, algorithm: str) -> str:
    """Returns the id of an object: the hash of its kind, size and content."""
    return hashlib.new(
        algorithm, b"%s %d\0" % (kind.encode(), len(content)) + content, usedforsecurity=False
    ).hexdigest()


class Pack:
    """The objects of one pack, which was read completely.

    Args:
        data: the pack.
        algorithm: `sha1` or `sha256`.
        limits: of sizes.

    Raises:
        GitProblem: it is no pack, or exceeds a limit.
    """

    def __init__(self, data: bytes, algorithm: str, limits: GitLimits) -> None:
        self._data = memoryview(data)
        self._algorithm = algorithm
        self._limits = limits
        self._unpacked = 0
        self._entries: dict[str, _Entry] = {}
        self._read()

    def __contains__(self, oid: str) -> bool:
        return oid in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def get(self, oid: str) -> GitObject:
        """Returns an object.

        Raises:
            GitProblem: it exceeds a limit, or its data are broken.
        """
        chain: list[_Entry] = []
        entry = self._entries[oid]
        while entry.base is not None:
            chain.append(entry)
            if len(chain) > _DEEPEST or entry.base not in self._entries:
                raise not_git()
            entry = self._entries[entry.base]
        content = self._inflate(entry)[0]
        for delta in reversed(chain):
            content = self._applied(content, self._inflate(delta)[0])
        return GitObject(entry.kind or "", content)

    def _read(self) -> None:
        if bytes(self._data[:4]) != b"PACK" or int.from_bytes(self._data[4:8], "big") not in (2, 3):
            raise not_git()
        count = int.from_bytes(self._data[8:12], "big")
        if count > self._limits.objects:
            raise GitProblem(
                "GitTooLarge",
                f"url: the server sent {count:,} objects, at most {self._limits.objects:,} are read; store the file in "
                "a smaller repository, or on a server that supports partial clones (uploadpack.allowFilter)",
            )
        at = 12
        waiting: defaultdict[str, list[_Entry]] = defaultdict(list)
        known: list[str] = []
        for _ in range(count):
            kind, size, at = self._head(at)
            base = None
            if kind == _DELTA:
                digits = hashlib.new(self._algorithm, usedforsecurity=False).digest_size
                base, at = bytes(self._data[at : at + digits]).hex(), at + digits
            elif kind not in _KINDS:
                raise not_git()  # offsets as bases are used only where they are asked for
            entry = _Entry(_KINDS.get(kind), size, at, base)
            content, at = self._inflate(entry)
            if entry.kind is None:
                waiting[base or ""].append(entry)
            else:
                known.append(self._add(entry, entry.kind, content))
        while known:
            oid = known.pop()
            for entry in waiting.pop(oid, ()):
                base_object = self.get(oid)
                content = self._applied(base_object.content, self._inflate(entry)[0])
                known.append(self._add(entry, base_object.kind, content))

    def _add(self, entry: _Entry, kind: str, content: bytes) -> str:
        oid = object_id(kind, content, self._algorithm)
        self._entries[oid] = entry
        return oid

    def _head(self, at: int) -> tuple[int, int, int]:
        """Returns kind, size and the place after the head of an entry."""
        try:
            byte = self._data[at]
            kind, size, shift = byte >> 4 & 7, byte & 15, 4
            while byte & 0x80:
                at += 1
                byte = self._data[at]
                size |= (byte & 0x7F) << shift
                shift += 7
                if shift > 60:
                    raise not_git()
        except IndexError:
            raise not_git() from None
        return kind, size, at + 1

    def _inflate(self, entry: _Entry) -> tuple[bytes, int]:
        """Returns the unpacked data of an entry, and the place after it."""
        self._spend(entry.size)
        unpacker = zlib.decompressobj()
        found = bytearray()
        at = entry.begin
        try:
            while not unpacker.eof:
                piece = unpacker.unconsumed_tail or bytes(self._data[at : at + _CHUNK])
                if not unpacker.unconsumed_tail:
                    at += len(piece)
                if not piece:
                    raise not_git()
                found += unpacker.decompress(piece, entry.size + 1 - len(found))
                if len(found) > entry.size:
                    raise not_git()
        except zlib.error:
            raise not_git() from None
        if len(found) != entry.size:
            raise not_git()
        return bytes(found), at - len(unpacker.unused_data)

    def _spend(self, size: int) -> None:
        self._unpacked += size
        if size > self._limits.object_bytes or self._unpacked > self._limits.unpacked_bytes:
            raise GitProblem(
                "GitTooLarge",
                f"url: the repository has objects of more than {self._limits.object_bytes:,} bytes, or more than "
                f"{self._limits.unpacked_bytes:,} in all; store the file in a smaller repository",
            )

    def _applied(self, base: bytes, delta: bytes) -> bytes:
        """Applies a difference to its base."""
        before, at = _varint(delta, 0)
        after, at = _varint(delta, at)
        if before != len(base):
            raise not_git()
        self._spend(after)
        found = bytearray()
        while at < len(delta):
            code = delta[at]
            at += 1
            if code & 0x80:
                begin, size, at = _copied(delta, code, at)
                if begin + size > len(base):
                    raise not_git()
                found += base[begin : begin + size]
            elif code:
                found += delta[at : at + code]
                at += code
            else:
                raise not_git()
            if len(found) > after:
                raise not_git()
        if len(found) != after:
            raise not_git()
        return bytes(found)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data) and shift < 60:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return value, at
    raise not_git()


def _copied(delta: bytes, code: int, at: int) -> tuple[int, int, int]:
    """Returns begin and size of a copy from the base, and the place after the instruction."""
    values = [0, 0]
    for bit in range(7):
        if code >> bit & 1:
            if at >= len(delta):
                raise not_git()
            which, shift = (0, bit) if bit < 4 else (1, bit - 4)
            values[which] |= delta[at] << 8 * shift
            at += 1
    return values[0], values[1] or 0x10000, at
