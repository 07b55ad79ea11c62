"""Adds accepted tools to the entry that a user has in `MCPServer.spec.acceptedTools`."""

from collections.abc import Mapping, Sequence
from typing import Any

from tarsy.resources.v1alpha1.tool_pin import MAX_ACCEPTED


def merged_acceptance(
    entries: Sequence[Mapping[str, Any]],
    username: str,
    groups: Sequence[str],
    digests: Mapping[str, str],
    rest: Mapping[str, Any],
) -> list[Mapping[str, Any]]:
    """Returns `spec.acceptedTools` with the definitions added to the user's own entry, the newest last.

    Args:
        entries: as they are.
        username: of the user.
        groups: of the user.
        digests: accepted definitions by tool.
        rest: further fields of the entry.
    """
    own: Mapping[str, Any] = next((entry for entry in entries if entry.get("username") == username), {})
    added = [{"name": tool, "digest": digest} for tool, digest in sorted(digests.items())]
    kept = [one for one in own.get("tools") or () if one not in added]
    stated = {"groups": list(groups)} if groups else {}
    entry = {"username": username, **stated, **rest, "tools": [*kept, *added][-MAX_ACCEPTED:]}
    others = [one for one in entries if one.get("username") != username]
    return [*others, entry]
