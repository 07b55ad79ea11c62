"""Defines a caller and a permission, which both frontends share."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from tarsy.http.models import RECORD_GROUP
from tarsy.kube.access import Subject


@dataclass(frozen=True, slots=True)
class Caller:
    """An authenticated user.

    `token` is set at the direct port only; writes to the Kubernetes API use it. `by_proxy` is true if an authenticating
    proxy signed the user in, whether or not it forwards a token.
    """

    username: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    token: str | None = field(default=None, repr=False)
    by_proxy: bool = False

    @property
    def subject(self) -> Subject:
        """Subject of a SubjectAccessReview."""
        return Subject(self.username, self.uid, self.groups, self.extra)


NOBODY: Final = Caller("system:anonymous", groups=("system:unauthenticated",))
"""The caller of a public route."""


@dataclass(frozen=True, slots=True)
class Permission:
    """A verb on a resource, checked by SubjectAccessReview in the namespace of the request."""

    verb: str
    resource: str
    subresource: str = ""
    group: str = RECORD_GROUP
