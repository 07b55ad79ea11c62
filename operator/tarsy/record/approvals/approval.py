"""Defines approvals of tool calls: the digest that people sign, the states of an approval, and when one permits a call.

Decision: what is signed is a digest over all that decides what a call does: its arguments in canonical form, the pinned
definition of its tool, uid and generation of its MCPServer, and the objects that it changes as they were shown. Right
before the call the digest is computed again from what would be sent; any difference means that nobody approved this
call.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

CHECKS_COUNT_FOR = timedelta(minutes=2)
"""Time for which the checks of an approval count; after that they are made again before the call is sent."""


class ApprovalState(StrEnum):
    """State of an approval; all but the first two are final."""

    PENDING = "pending"
    APPROVED = "approved"
    REJECTED = "rejected"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"
    STALE = "stale"
    CONSUMED = "consumed"


@dataclass(frozen=True, slots=True)
class GatedCall:
    """Holds everything that determines the effect of a call.

    Args:
        server_uid: uid of the MCPServer.
        server_generation: generation of the MCPServer.
        tool: name of the tool.
        definition: digest of the tool's pinned definition.
        arguments: as they would be sent.
        targets: the objects that it changes, as people were shown them (`TargetState.to_dict`).
    """

    server_uid: str
    server_generation: int
    tool: str
    definition: str
    arguments: Mapping[str, Any]
    targets: Sequence[Mapping[str, Any]] = ()

    @property
    def digest(self) -> str:
        """The digest that people sign, as `sha256:` and hex."""
        parts = [1, self.server_uid, self.server_generation, self.tool, self.definition, self.arguments]
        if self.targets:
            parts = [2, *parts[1:], [dict(target) for target in self.targets]]
        return f"sha256:{hashlib.sha256(plain_json(parts).encode()).hexdigest()}"


def plain_json(value: Any) -> str:
    """Returns the one JSON text of a value: keys sorted, no spaces, and no text that JSON cannot tell from another.

    Raises:
        ValueError: the value contains a number that is none in JSON, or an object with a key that is no text.
    """
    _check_keys(value)
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def _check_keys(value: Any) -> None:
    todo = [value]
    while todo:
        match todo.pop():
            case Mapping() as found:
                if not all(isinstance(key, str) for key in found):
                    raise ValueError("a key of an argument is no text")
                todo.extend(found.values())
            case list() | tuple() as found:
                todo.extend(found)
            case _:
                pass


@dataclass(frozen=True, slots=True)
class SignedDecision:
    """A decision that the Kubernetes API let its author write."""

    username: str
    approve: bool
    digest: str
    groups: tuple[str, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class AskedApproval:
    """Holds the request to approvers."""

    digest: str
    required: int
    requesters: frozenset[str]
    expires_at: datetime


def judge_decisions(
    asked: AskedApproval, decisions: Sequence[SignedDecision], entitled: frozenset[str], now: datetime
) -> ApprovalState:
    """Returns what decisions amount to; anything that is not clearly an approval is none.

    Args:
        asked: what people were asked.
        decisions: in the order in which they were made.
        entitled: users of them who may approve calls of the server now.
        now: the time.
    """
    counted = [one for one in decisions if one.username in entitled and one.digest == asked.digest]
    if any(not one.approve for one in counted):
        return ApprovalState.REJECTED
    if now >= asked.expires_at:
        return ApprovalState.EXPIRED
    approvers = {one.username for one in counted} - asked.requesters
    enough = asked.required in (1, 2) and len(approvers) >= asked.required and bool(asked.requesters)
    return ApprovalState.APPROVED if enough else ApprovalState.PENDING
