"""Names a file of a commit of a public Git repository.

Decision: a commit is named by its full id, because a branch, a tag or a shorter id may name something else tomorrow.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from tarsy.resources.schema import Model


class GitSource(Model):
    """A file of a commit of a public Git repository."""

    url: Annotated[str, StringConstraints(min_length=10, max_length=2048, pattern=r"^https://[^?#\s]+$")] = Field(
        description="https URL of the repository, as git clone takes it. Its host must be allowed by the administrator "
        "(--git-host)."
    )
    commit: Annotated[str, StringConstraints(max_length=64, pattern=r"^([0-9a-f]{40}|[0-9a-f]{64})$")] = Field(
        description="Full id of the commit, 40 or 64 hexadecimal digits."
    )
    path: Annotated[str, StringConstraints(min_length=1, max_length=1024, pattern=r"^[^/]+(/[^/]+)*$")] = Field(
        description="Path of the file from the root of the repository."
    )
