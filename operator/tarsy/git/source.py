"""Defines what is read from Git, its limits, and the errors."""

import re
from dataclasses import dataclass
from typing import Final, Literal

from tarsy.plan.place import Place

COMMIT_PATTERN: Final = r"^([0-9a-f]{40}|[0-9a-f]{64})$"
"""A full commit id, of SHA-1 or SHA-256: a shorter one, a branch or a tag may name something else tomorrow."""

PATH_PATTERN: Final = r"^[^/\x00-\x1f]+(/[^/\x00-\x1f]+)*$"
"""A path from the root of the repository."""

MAX_GIT_FILE_BYTES: Final = 16 << 20
"""Maximum size of a file that is read."""

GitReason = Literal[
    "GitHostNotAllowed",
    "GitCommitMissing",
    "GitPathMissing",
    "GitTooLarge",
    "GitRedirected",
    "GitUnavailable",
]


class GitProblem(Exception):
    """A file cannot be read: `reason` is that of a condition, `message` begins with the field and has the remedy."""

    def __init__(self, reason: GitReason, message: str) -> None:
        super().__init__(message)
        self.reason: GitReason = reason
        self.message = message


@dataclass(frozen=True, slots=True)
class GitFile:
    """One file of one commit: URL of the repository, full commit id, path from the root."""

    url: str
    commit: str
    path: str

    def place(self) -> Place:
        """Returns where the repository is.

        Raises:
            GitProblem: the URL is not an https URL that every client reads alike.
        """
        try:
            place = Place.of(self.url)
        except ValueError as error:
            raise GitProblem("GitHostNotAllowed", f"url: {error}") from None
        if place.scheme != "https":
            raise GitProblem("GitHostNotAllowed", "url: the URL must begin with https://")
        if "?" in place.url or "#" in place.url:
            raise GitProblem("GitHostNotAllowed", "url: the URL must not contain ? or #; name the repository only")
        return place

    def check(self) -> None:
        """Checks commit and path.

        Raises:
            GitProblem: one of them cannot name a file of a commit.
        """
        if not re.fullmatch(COMMIT_PATTERN, self.commit):
            text = "commit: it must be a full commit id, of 40 or 64 hexadecimal digits; `git rev-parse HEAD` prints it"
            raise GitProblem("GitCommitMissing", text)
        if not re.fullmatch(PATH_PATTERN, self.path) or {".", ".."} & set(self.path.split("/")):
            text = "path: it must be a path from the root of the repository, without a leading / and without .."
            raise GitProblem("GitPathMissing", text)


@dataclass(frozen=True, slots=True)
class GitLimits:
    """Limits of one read.

    Attributes:
        pack_bytes: of each response.
        objects: of each response.
        object_bytes: of an object; the file itself may have `MAX_GIT_FILE_BYTES`.
        unpacked_bytes: of all that is unpacked.
        requests: number of requests, which grows with the depth of the path.
        seconds: of all.
    """

    pack_bytes: int = 64 << 20
    objects: int = 100_000
    object_bytes: int = 64 << 20
    unpacked_bytes: int = 512 << 20
    requests: int = 64
    seconds: float = 60.0


def why_not_listed(place: Place, hosts: tuple[str, ...]) -> str | None:
    """Returns why a repository is not read; None: its host is on the administrator's list.

    Args:
        place: where it is.
        hosts: names of hosts; one with another port than 443 as NAME:PORT.
    """
    name = place.host if place.port == 443 else f"{place.host}:{place.port}"
    if name in {host.lower().rstrip(".").removesuffix(":443") for host in hosts}:
        return None
    return f"host {name} is not allowed; ask the administrator to start the operator with --git-host {name}"
