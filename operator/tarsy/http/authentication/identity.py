"""Who asks, and what may be asked of the Kubernetes API about them: two plain values, the same at both doors."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from tarsy.http.models import RECORD_GROUP
from tarsy.kube.access import Subject


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks, as TokenReview or the front proxy says.

    `token` is there at the direct door only: writes to the Kubernetes API are made with it. `by_proxy`: an
    authenticating proxy signed them in, whether or not it forwards a token of theirs.
    """

    username: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    token: str | None = field(default=None, repr=False)
    by_proxy: bool = False

    @property
    def subject(self) -> Subject:
        """Who a SubjectAccessReview is about."""
        return Subject(self.username, self.uid, self.groups, self.extra)


NOBODY: Final = Caller("system:anonymous", groups=("system:unauthenticated",))
"""Who asks a public route."""


@dataclass(frozen=True, slots=True)
class Permission:
    """What SubjectAccessReview is asked, in the namespace of the request."""

    verb: str
    resource: str
    subresource: str = ""
    group: str = RECORD_GROUP
