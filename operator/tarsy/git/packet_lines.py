"""Encodes requests and decodes responses of protocol 2, which are made of lines with their length."""

from collections.abc import Iterable, Iterator
from typing import Final

from tarsy.git.source import GitProblem

FLUSH: Final = b"0000"
DELIMITER: Final = b"0001"
_RESPONSE_END = 2
_LONGEST = 65_520


def packet_line(text: str) -> bytes:
    """Encodes a line."""
    data = f"{text}\n".encode()
    return b"%04x" % (len(data) + 4) + data


def fetch_request(oid: str, algorithm: str, *, shallow: bool, filtered: bool) -> bytes:
    """Builds the request for one object.

    Args:
        oid: its id.
        algorithm: `sha1` or `sha256`.
        shallow: whether to ask for no history.
        filtered: whether to ask for no other tree and no file.
    """
    arguments = ["no-progress", f"want {oid}"]
    arguments += ["deepen 1"] if shallow else []
    arguments += ["filter tree:0"] if filtered else []
    parts: Iterable[bytes] = (
        packet_line("command=fetch"),
        packet_line("agent=tarsy"),
        packet_line(f"object-format={algorithm}"),
        DELIMITER,
        *(packet_line(one) for one in (*arguments, "done")),
        FLUSH,
    )
    return b"".join(parts)


def packets(data: bytes) -> Iterator[bytes | None]:
    """Yields the lines of a response; None stands for the end of a part.

    Raises:
        GitProblem: it is no response of Git.
    """
    at = 0
    while at < len(data):
        try:
            size = int(data[at : at + 4], 16) if len(data) >= at + 4 else -1
        except ValueError:
            size = -1
        if 0 <= size <= _RESPONSE_END:
            at += 4
            yield None
            continue
        if not 4 <= size <= _LONGEST or at + size > len(data):
            raise not_git()
        yield data[at + 4 : at + size]
        at += size


def pack_of(data: bytes) -> bytes:
    """Returns the pack in the response to a fetch.

    Raises:
        GitProblem: the server refuses, or it is no response of Git.
    """
    found: list[bytes] = []
    inside = False
    for line in packets(data):
        if line is None:
            continue
        if line.startswith(b"ERR "):
            raise refusal_of(line[4:])
        if not inside:
            inside = line.rstrip(b"\n") == b"packfile"
        elif line[:1] == b"\x01":
            found.append(line[1:])
        elif line[:1] == b"\x03":
            raise refusal_of(line[1:])
    if not inside:
        raise not_git()
    return b"".join(found)


def not_git() -> GitProblem:
    """Returns the error for a response that is none of Git."""
    return GitProblem("GitUnavailable", "url: the server's answer is not that of a Git server; check the URL")


def refusal_of(words: bytes) -> GitProblem:
    """Returns the error for a refusal. The server's words are not repeated, except for what they mean."""
    if b"not our ref" in words or b"not found" in words.lower():
        return GitProblem(
            "GitCommitMissing", "commit: the repository does not have the commit; push it, or name another"
        )
    return GitProblem("GitUnavailable", "url: the Git server refused the request; check that the repository is public")
