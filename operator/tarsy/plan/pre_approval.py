"""Decides whether `Chain.spec.preApproved` approves a call, as a pure function.

Decision: the Chain as it is now counts, not the plan of the run, so that an entry which is taken out approves nothing
from then on. What is in doubt approves nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from tarsy.plan.approval_expressions import ARGUMENTS, NotEvaluated, evaluate
from tarsy.resources.v1alpha1.chain import Chain
from tarsy.resources.v1alpha1.pre_approval import MAX_DAYS, PreApproval


@dataclass(frozen=True, slots=True)
class PreApprovalMatch:
    """The entry that approves a call, or why those of its tool do not."""

    entry: PreApproval | None = None
    field: str = ""
    doubt: str = ""


def pre_approval(
    chain: Chain, server: tuple[str, str], tool: str, arguments: Mapping[str, Any], now: datetime
) -> PreApprovalMatch:
    """Returns the first entry that approves a call.

    Args:
        chain: as it is now.
        server: namespace and name of the MCPServer.
        tool: name of the tool.
        arguments: as they would be sent.
        now: the time.
    """
    doubts = []
    for number, entry in enumerate(chain.spec.pre_approved):
        place = entry.server_namespace or chain.metadata.namespace
        if ((place, entry.server), entry.tool) != (server, tool):
            continue
        field = f"spec.preApproved[{number}] of {chain}"
        why = _why_not(entry, arguments, now)
        if why is None:
            return PreApprovalMatch(entry, field)
        doubts.append(f"{field} does not count: {why}.")
    return PreApprovalMatch(doubt=" ".join(doubts))


def _why_not(entry: PreApproval, arguments: Mapping[str, Any], now: datetime) -> str | None:
    if now >= entry.until:
        return f"it ended at {entry.until:%Y-%m-%dT%H:%M:%SZ}"
    if entry.until - now > timedelta(days=MAX_DAYS):
        return f"its until is more than {MAX_DAYS} days ahead"
    try:
        fits = evaluate(entry.when, {ARGUMENTS: arguments})
    except NotEvaluated as error:
        return f"its condition has no value for these arguments ({error})"
    return None if fits is True else "its condition does not hold for these arguments"
