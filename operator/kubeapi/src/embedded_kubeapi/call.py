"""Defines the caller, the attributes and the options of a request, for authorization, admission and writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from embedded_kubeapi.objects import Obj

ADMINS = "system:masters"
ANONYMOUS = "system:anonymous"
AUTHENTICATED, UNAUTHENTICATED = "system:authenticated", "system:unauthenticated"


@dataclass(frozen=True)
class Caller:
    """The identity of a caller."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def user_info(self) -> Obj:
        """Returns the identity as UserInfo (authentication.k8s.io)."""
        info: Obj = {"username": self.name}
        if self.uid:
            info["uid"] = self.uid
        if self.groups:
            info["groups"] = list(self.groups)
        if self.extra:
            info["extra"] = {key: list(values) for key, values in self.extra.items()}
        return info


@dataclass(frozen=True)
class Attributes:
    """The attributes of a request; `path` is set only for non-resource requests."""

    verb: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""


@dataclass(frozen=True)
class Decision:
    """The decision of an authorizer."""

    allowed: bool
    reason: str = ""


class Authorizer(Protocol):
    """Decides what callers may do."""

    def decide(self, caller: Caller, attributes: Attributes) -> Decision: ...


@dataclass
class Call:
    """The options of a request, and the warnings for its response."""

    caller: Caller
    manager: str = "unknown"
    dry_run: bool = False
    validation: Literal["Strict", "Warn", "Ignore"] = "Warn"
    force: bool = False
    warnings: list[str] = field(default_factory=list)

    def warn(self, text: str) -> None:
        """Adds a warning, once."""
        if text not in self.warnings:
            self.warnings.append(text)
