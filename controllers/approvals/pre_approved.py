"""Takes entries of `Chain.spec.preApproved` as decisions about calls.

Watches: nothing of its own. Decides: whether an entry of the run's Chain, as it is now, approves a call; the rights of
its author and the policy are checked as those of any decision. Writes: nothing.

Where it is not known what a call changes, GitOps may manage it, and nobody would look: an entry counts there only if
the MCPServer accepts such calls (`undetermined: Ask`).
"""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from tarsy.controllers.machinery.cache import Cache
from tarsy.plan.pre_approval import pre_approval
from tarsy.record.approvals.approval import SignedDecision
from tarsy.resources.v1alpha1 import Chain, MCPServer
from tarsy.store.approvals import ApprovalRecord


def pre_approved_by(record: ApprovalRecord, cache: Cache, now: datetime) -> tuple[SignedDecision | None, str]:
    """Returns the decision that an entry amounts to, and why none does.

    Args:
        record: the approval.
        cache: the objects as they are now.
        now: the time.
    """
    asked, shown = record.request.get("chain"), record.request["shown"]
    if asked is None:
        return None, ""
    chain = cache.get(Chain, asked["namespace"], asked["name"])
    if chain is None or chain.metadata.uid != asked["uid"]:
        return None, ""
    call = shown["call"]
    arguments = json.loads(shown["arguments"])
    found = pre_approval(chain, (call["serverNamespace"], call["server"]), call["tool"], arguments, now)
    if found.entry is None:
        return None, found.doubt
    if not record.targets and not _accepts_unknown(cache, call):
        place = f"{call['serverNamespace']}/{call['server']}"
        return None, (
            f"{found.field} does not count: the objects that the call changes are not known, so that GitOps may manage "
            f"them. Declare them in spec.approval.targets of MCPServer {place}, or accept that with undetermined: Ask."
        )
    author = found.entry.author
    reason = f"{found.field}, until {found.entry.until:%Y-%m-%dT%H:%M:%SZ}"
    return SignedDecision(author.username, True, record.digest, author.groups, reason), ""


def _accepts_unknown(cache: Cache, call: Mapping[str, Any]) -> bool:
    """Whether the owner of a server accepts calls whose objects are not known."""
    server = cache.get(MCPServer, call["serverNamespace"], call["server"])
    return server is not None and server.spec.approval is not None and server.spec.approval.undetermined == "Ask"
