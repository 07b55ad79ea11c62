"""Implements a bounded set of grouped members, which evicts the oldest member of the largest group.

Decision: a new member is never refused. A client that opens a thousand idle connections evicts its own, and a client
that finishes before the whole set is replaced is never evicted. Groups (the address of a peer, a namespace) make it
fair: a group loses members only if no other group has more.
"""

from collections.abc import Hashable
from typing import Generic, TypeVar

G = TypeVar("G", bound=Hashable)
_M = TypeVar("_M", bound=Hashable)


class FairSet(Generic[G, _M]):
    """Holds at most `limit` members, and at most `each` of one group.

    Args:
        limit: maximum number of members.
        each: maximum number of members of one group; None: `limit`.
    """

    def __init__(self, limit: int, each: int | None = None) -> None:
        if limit < 1 or (each is not None and each < 1):
            raise ValueError("limits must be at least 1")
        self._limit = limit
        self._each = limit if each is None else each
        self._groups: dict[G, dict[_M, None]] = {}
        self._group_of: dict[_M, G] = {}

    def __len__(self) -> int:
        return len(self._group_of)

    def enter(self, group: G, member: _M) -> list[_M]:
        """Adds a member; returns the evicted members, never the new one."""
        left = []
        if len(self._groups.get(group, ())) >= self._each:
            left.append(self._drop_oldest(group))
        elif len(self) >= self._limit:
            # Among the largest groups, the oldest one: dicts keep their order.
            left.append(self._drop_oldest(max(self._groups, key=lambda one: len(self._groups[one]))))
        self._groups.setdefault(group, {})[member] = None
        self._group_of[member] = group
        return left

    def leave(self, member: _M) -> None:
        """Removes a member, if it is in the set."""
        group = self._group_of.pop(member, None)
        if group is None:
            return
        members = self._groups[group]
        del members[member]
        if not members:
            del self._groups[group]

    def _drop_oldest(self, group: G) -> _M:
        member = next(iter(self._groups[group]))
        self.leave(member)
        return member
