"""Models of tool calls that wait for approval: request, evidence and decisions.

Decision: they are read from the object leniently, field by field, so that a plugin shows the objects of a newer
operator too.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, Self
from uuid import UUID

from pydantic import Field

from tarsy.http.models import Body, View
from tarsy.http.views.common import NEXT_PAGE, ConditionView
from tarsy.record.finding import Evidence
from tarsy.record.integrity import Integrity
from tarsy.resources.v1alpha1.tool_approval import CallDigest

MAX_RESULT = 8_192


class WaitingRunRef(View):
    """The run that waits."""

    kind: str = Field(description="Investigation or ChatMessage.")
    name: str
    uid: str


class ApprovalItem(View):
    """A call that waits for people, or waited, in brief."""

    namespace: str
    name: str
    uid: str
    run: WaitingRunRef
    server: str
    server_namespace: str
    tool: str
    access: str = Field(description="Known effect of the tool: changes, destructive or unknown.")
    target: str | None = Field(description="First object that the call changes, as kind/name. Null if unknown.")
    required: int = Field(description="Number of people who must approve.")
    approvals: int = Field(description="Number of people who approved. Whether they count is checked by the operator.")
    phase: str = Field(description="Pending, or the decision.")
    created_at: datetime
    expires_at: datetime = Field(description="Time until which people can decide.")
    requesters: tuple[str, ...] = Field(description="Users who started the run; they cannot approve.")

    @classmethod
    def of(cls, raw: Mapping[str, Any]) -> Self:
        """Converts an object of the Kubernetes API. Raises ValidationError: it lacks fields of this version."""
        return cls.model_validate(cls.flat(raw))

    @staticmethod
    def flat(raw: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the fields of an object of the Kubernetes API by their names here, not yet checked."""
        return _fields(raw)


class ApprovalTarget(View):
    """An object that the call changes."""

    api_version: str
    kind: str
    namespace: str | None = None
    name: str
    managed_by: str | None = Field(default=None, description="Argo CD, Flux or Helm, if one of them manages it.")


class ApprovalPreview(View):
    """Changes that the call would make."""

    kind: str = Field(description="DryRun: by the tool itself. Read: the objects as they are. None: unknown.")
    diff: str = ""
    note: str | None = Field(default=None, description="Reason why there is no preview, or limits of the preview.")


class UndoView(View):
    """The call that would undo it, or why there is none."""

    tool: str | None = None
    arguments: str | None = None
    note: str | None = None


class ArgumentOriginView(View):
    """Origins of one value of the arguments."""

    argument: str = Field(description="JSON pointer of the value.")
    origins: tuple[str, ...] = Field(description="Person, Plan, Alert, K, A, X or Nowhere, as in spec.provenance.")
    calls: tuple[str, ...] = Field(default=(), description="Ids of tool calls whose results contain it.")
    destination: bool = Field(default=False, description="Whether the call sends, fetches or runs something there.")


class DecisionView(View):
    """The decision of one person, as the object has it."""

    username: str
    decision: str
    arguments_digest: str
    reason: str | None = None
    at: datetime | None = None


class ApprovalView(ApprovalItem):
    """A call that waits for people, or waited, whole."""

    arguments_digest: str = Field(description="Digest of what is shown; a decision names it.")
    arguments: str = Field(description="Arguments as JSON, without secrets.")
    targets: tuple[ApprovalTarget, ...]
    preview: ApprovalPreview
    provenance: tuple[ArgumentOriginView, ...] = Field(description="Where the arguments come from.")
    undo: UndoView | None = Field(description="The call that would undo it. Null: the MCPServer declares none.")
    undoes: str | None = Field(description="Name of the ToolApproval of the call that this one undoes.")
    claim: str = Field(description="Reason that the agent gives. Untrusted text.")
    evidence: tuple[str, ...] = Field(description="Ids of the tool calls of the run that the agent cites.")
    decisions: tuple[DecisionView, ...]
    decided_by: tuple[str, ...] = Field(description="Users whose decisions counted.")
    decided_at: datetime | None
    outcome: str | None
    conditions: tuple[ConditionView, ...]

    def condition(self, kind: str) -> ConditionView | None:
        """Returns a condition by its type; None without one."""
        return next((one for one in self.conditions if one.type == kind), None)


class ApprovalPage(View):
    """A page of calls, those that expire first at the top."""

    items: tuple[ApprovalItem, ...]
    next: str | None = Field(alias="continue", description=NEXT_PAGE)


class DecisionBody(Body):
    """The decision of the caller."""

    decision: Literal["Approve", "Reject"]
    arguments_digest: CallDigest = Field(description="`argumentsDigest` as the caller was shown it.")
    reason: str | None = Field(default=None, max_length=1024, description="Reason for the decision.")


class CitedResult(View):
    """A result that a request cites."""

    id: str = Field(description="Id by which the agent cites the call.")
    call: UUID
    stage: str
    agent: str
    tool: str = Field(description="`server.tool`.")
    arguments: str
    result: str = Field(description="Beginning of the masked result, of at most 8,192 characters.")
    truncated: bool
    integrity: Integrity = Field(description="Who can write the result: K control plane, A workloads, X anybody.")

    @classmethod
    def of(cls, ref: str, found: Evidence) -> Self:
        """Converts a stored result, cited as `ref`."""
        return cls(
            id=ref,
            call=found.interaction,
            stage=found.stage,
            agent=found.agent,
            tool=found.tool,
            arguments=found.arguments,
            result=found.result[:MAX_RESULT],
            truncated=len(found.result) > MAX_RESULT,
            integrity=found.marks.integrity,
        )


class ApprovalEvidenceView(View):
    """The results that a request cites, in its order."""

    items: tuple[CitedResult, ...]


def _fields(raw: Mapping[str, Any]) -> dict[str, Any]:
    meta, spec, status = _of(raw, "metadata"), _of(raw, "spec"), _of(raw, "status")
    call, why, decisions = _of(spec, "call"), _of(spec, "why"), spec.get("decisions") or ()
    # Those who approved beforehand are in the status alone.
    standing = set(status.get("decidedBy") or ()) if status.get("phase") in (None, "Pending") else set()
    return {
        "namespace": meta.get("namespace"),
        "name": meta.get("name"),
        "uid": meta.get("uid"),
        "run": spec.get("runRef"),
        "server": call.get("server"),
        "serverNamespace": call.get("serverNamespace"),
        "tool": call.get("tool"),
        "access": call.get("access"),
        "target": status.get("target") or _first(spec.get("targets") or ()),
        "required": spec.get("required"),
        "approvals": len({one.get("username") for one in decisions if one.get("decision") == "Approve"} | standing),
        "phase": status.get("phase") or "Pending",
        "createdAt": meta.get("creationTimestamp"),
        "expiresAt": spec.get("expiresAt"),
        "requesters": spec.get("requesters"),
        "argumentsDigest": spec.get("argumentsDigest"),
        "arguments": spec.get("arguments") or "",
        "targets": spec.get("targets") or (),
        "preview": spec.get("preview"),
        "provenance": spec.get("provenance") or (),
        "undo": spec.get("undo"),
        "undoes": spec.get("undoes"),
        "claim": why.get("claim"),
        "evidence": why.get("evidence") or (),
        "decisions": decisions,
        "decidedBy": status.get("decidedBy") or (),
        "decidedAt": status.get("decidedAt"),
        "outcome": status.get("outcome"),
        "conditions": [{"message": "", **one} for one in status.get("conditions") or ()],
    }


def _of(found: Mapping[str, Any], field: str) -> Mapping[str, Any]:
    part = found.get(field)
    return part if isinstance(part, Mapping) else {}


def _first(targets: Sequence[Mapping[str, Any]]) -> str | None:
    return next((f"{one.get('kind')}/{one.get('name')}" for one in targets), None)
