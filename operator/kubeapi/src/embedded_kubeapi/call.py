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
    """An identity."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def user_info(self) -> Obj:
        """As reviews show it (authentication.k8s.io UserInfo)."""
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
    """What is asked for; `path` only when it is no resource."""

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
    """An authorizer's answer."""

    allowed: bool
    reason: str = ""


class Authorizer(Protocol):
    """Anything that knows who may do what."""

    def decide(self, caller: Caller, attributes: Attributes) -> Decision: ...


@dataclass
class Call:
    """One request's options, and the warnings that its answer will carry."""

    caller: Caller
    manager: str = "unknown"
    dry_run: bool = False
    validation: Literal["Strict", "Warn", "Ignore"] = "Warn"
    force: bool = False
    warnings: list[str] = field(default_factory=list)

    def warn(self, text: str) -> None:
        """Add a warning once."""
        if text not in self.warnings:
            self.warnings.append(text)
