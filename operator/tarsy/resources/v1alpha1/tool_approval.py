"""ToolApproval: one call of a tool that waits for people.

Decision: the operator writes it, and people append decisions, each with the digest of what they were shown. The call on
record runs, never a text of this object. A username in it proves nothing by itself: the policy `tarsy-approve`
(manifests/components/policies) lets people write their own name only, and where it is not in force nothing is executed.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints

from tarsy.resources.meta import AGE, Column, Resource, Status
from tarsy.resources.schema import (
    LabelName,
    Model,
    ObjectName,
    Time,
    ToolName,
    Uid,
    Unique,
    ValidationRule,
    clipped,
)
from tarsy.resources.v1alpha1.argument_provenance import MAX_PROVENANCE, ArgumentProvenance
from tarsy.resources.v1alpha1.common import MAX_GROUP, MAX_GROUPS, ServerName, immutable

MAX_ARGUMENTS, MAX_DIFF, MAX_CLAIM, MAX_QUOTES, MAX_TARGETS = 8_192, 16_384, 1_024, 16, 16
CallDigest = Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$", max_length=71)]
CallPlace = Annotated[str, StringConstraints(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_-]+$")]
Username = Annotated[str, StringConstraints(min_length=1, max_length=1024)]


class RunReference(Model):
    """The run that waits."""

    name: ObjectName = Field(description="Name of the Investigation or ChatMessage.")
    uid: Uid = Field(description="metadata.uid of it.")
    kind: Literal["Investigation", "ChatMessage"] = Field(description="Kind of it.")


class WaitingCall(Model):
    """The call that waits."""

    id: CallPlace = Field(description="Id of the call in its run.")
    server: ServerName = Field(description="MCPServer that would receive it.")
    server_namespace: LabelName = Field(description="Namespace of the MCPServer.")
    tool: ToolName = Field(description="Tool of the server.")
    access: Literal["changes", "destructive", "unknown"] = Field(description="Known effect of the tool.")


class ChangedObject(Model):
    """An object that the call changes."""

    api_version: Annotated[str, StringConstraints(min_length=1, max_length=253)] = Field(description="API version.")
    kind: Annotated[str, StringConstraints(min_length=1, max_length=63)] = Field(description="Kind.")
    namespace: Annotated[str, StringConstraints(max_length=63)] | None = Field(
        default=None, description="Namespace; not set for cluster-scoped objects."
    )
    name: Annotated[str, StringConstraints(min_length=1, max_length=253)] = Field(description="Name.")
    uid: Uid | None = Field(
        default=None, description="metadata.uid when the approval was requested; not set if it did not exist."
    )
    generation: Annotated[int, Field(ge=0, le=2**53)] | None = Field(
        default=None,
        description="metadata.generation when it was requested, for a kind that has one. For information only.",
    )
    spec_hash: CallDigest | None = Field(
        default=None, description="Digest of all but metadata and status when it was requested."
    )
    resource_version: Annotated[str, StringConstraints(min_length=1, max_length=64)] | None = Field(
        default=None,
        description="metadata.resourceVersion when it was requested; only for kinds with neither a generation nor a "
        "status, such as ConfigMap.",
    )
    managed_by: Annotated[str, clipped(256), StringConstraints(max_length=256)] | None = Field(
        default=None, description="Argo CD, Flux or Helm, if one of them manages it, with the label or annotation."
    )


class Preview(Model):
    """Changes that the call would make."""

    kind: Literal["DryRun", "Read", "None"] = Field(
        description="Source: the tool's own dry run, the objects as they are now, or none."
    )
    diff: Annotated[str, clipped(MAX_DIFF), StringConstraints(max_length=MAX_DIFF)] = Field(
        default="", description="The change, or the objects, without secrets and truncated to 16,384 characters."
    )
    note: Annotated[str, clipped(MAX_CLAIM), StringConstraints(max_length=MAX_CLAIM)] | None = Field(
        default=None, description="Reason why there is no preview, or limits of the preview."
    )


class UndoCall(Model):
    """The call that would undo it, or why there is none."""

    tool: ToolName | None = Field(default=None, description="Tool of the same server.")
    arguments: Annotated[str, StringConstraints(max_length=MAX_ARGUMENTS)] | None = Field(
        default=None, description="Arguments of the call that undoes it. It needs approval itself."
    )
    note: Annotated[str, clipped(MAX_CLAIM), StringConstraints(max_length=MAX_CLAIM)] | None = Field(
        default=None, description="Reason why it cannot be undone."
    )


class CallGrounds(Model):
    """The agent's reason, with the results that it cites."""

    claim: Annotated[str, clipped(MAX_CLAIM), StringConstraints(min_length=1, max_length=MAX_CLAIM)] = Field(
        description="Reason that the agent gives. Untrusted text."
    )
    evidence: tuple[CallPlace, ...] = Field(
        min_length=1, max_length=MAX_QUOTES, description="Ids of the tool calls of the run that it cites."
    )


class ApprovalDecision(Model):
    """The decision of one person."""

    username: Username = Field(description="Your own username.")
    decision: Literal["Approve", "Reject"] = Field(description="Approve or Reject.")
    arguments_digest: CallDigest = Field(description="spec.argumentsDigest as shown to you.")
    groups: Annotated[
        tuple[Annotated[str, StringConstraints(min_length=1, max_length=MAX_GROUP)], ...],
        Field(max_length=MAX_GROUPS),
    ] = Field(
        default=(),
        description="Your groups through which you have the verb approve, if any. The operator checks them again "
        "before the call is sent.",
    )
    reason: Annotated[str, StringConstraints(max_length=1024)] | None = Field(
        default=None, description="Reason for the decision."
    )
    at: Time | None = Field(
        default=None, description="Time of the decision, as you state it. The record contains the time of the operator."
    )


class ToolApprovalSpec(Model):
    """The waiting call, and the decisions about it."""

    RULES: ClassVar[tuple[ValidationRule, ...]] = (
        ValidationRule(
            "oldSelf.decisions.all(old, self.decisions.exists(now, now == old))",
            "decisions can only be appended; keep the earlier ones as they are",
            field="decisions",
            reason="FieldValueForbidden",
        ),
        ValidationRule(
            "self.decisions.all(one, one.decision == 'Reject' || !(one.username in self.requesters) "
            "|| oldSelf.decisions.exists(was, was.username == one.username))",
            "you cannot approve a call of a run that you started; ask a colleague",
            field="decisions",
            reason="FieldValueForbidden",
        ),
        *immutable(
            "ToolApproval",
            "runRef",
            "call",
            "argumentsDigest",
            "arguments",
            "targets",
            "preview",
            "undo",
            "undoes",
            "why",
            "provenance",
            "expiresAt",
            "required",
            "requesters",
        ),
    )

    run_ref: RunReference = Field(description="Run that waits.")
    call: WaitingCall = Field(description="Call that waits.")
    arguments_digest: CallDigest = Field(
        description="Digest of the arguments, the definition of the tool, uid and generation of the MCPServer, and the "
        "targets."
    )
    arguments: Annotated[str, clipped(MAX_ARGUMENTS), StringConstraints(max_length=MAX_ARGUMENTS)] = Field(
        default="",
        description="Arguments for display, without secrets and truncated to 8,192 characters.",
    )
    targets: tuple[ChangedObject, ...] = Field(
        default=(), max_length=MAX_TARGETS, description="Objects that the call changes, if the MCPServer declares them."
    )
    preview: Preview = Field(description="What the call would change.")
    undo: UndoCall | None = Field(default=None, description="How the call can be undone, if the MCPServer declares it.")
    undoes: ObjectName | None = Field(
        default=None, description="ToolApproval of the call that this one undoes, as its undo says."
    )
    why: CallGrounds = Field(description="Reason and evidence.")
    provenance: tuple[ArgumentProvenance, ...] = Field(
        default=(),
        max_length=MAX_PROVENANCE,
        description="Where the values of the arguments come from: destinations first, then in the order of the "
        "arguments.",
    )
    expires_at: Time = Field(description="Time until which people can decide.")
    required: Annotated[int, Field(ge=1, le=2)] = Field(description="Number of people who must approve.")
    requesters: tuple[Username, ...] = Field(
        min_length=1, max_length=4, description="Users who started the run; they cannot approve."
    )
    decisions: Annotated[tuple[ApprovalDecision, ...], Unique("username")] = Field(
        default=(), max_length=8, description="Decisions. Append one entry of your own."
    )


class ToolApprovalStatus(Status):
    """Outcome of the approval."""

    phase: Literal["Pending", "Approved", "Rejected", "Expired", "Withdrawn", "Stale", "Executed"] | None = Field(
        default=None, description="Phase for display."
    )
    target: Annotated[str, clipped(253), StringConstraints(max_length=253)] | None = Field(
        default=None, description="First object that the call changes, as kind/name."
    )
    decided_by: tuple[Annotated[str, clipped(256), StringConstraints(max_length=256)], ...] = Field(
        default=(), max_length=8, description="Users whose decisions counted, as the operator checked them."
    )
    decided_at: Time | None = Field(default=None, description="Time of the decision.")
    outcome: Annotated[str, clipped(1024), StringConstraints(max_length=1024)] | None = Field(
        default=None, description="Outcome of the call."
    )


class ToolApproval(Resource[ToolApprovalSpec, ToolApprovalStatus]):
    """One tool call that waits for approval. To wait for it: kubectl wait --for=condition=Decided tapp/NAME."""

    KIND: ClassVar[str] = "ToolApproval"
    PLURAL: ClassVar[str] = "toolapprovals"
    SHORT_NAMES: ClassVar[tuple[str, ...]] = ("tapp",)
    COLUMNS: ClassVar[tuple[Column, ...]] = (
        Column("Run", ".spec.runRef.name", description="Run that waits."),
        Column("Tool", ".spec.call.tool", description="Tool that would be called."),
        Column("Target", ".status.target", description="First object that the call changes."),
        Column("Access", ".spec.call.access", description="Known effect of the tool."),
        Column("Needs", ".spec.required", "integer", description="Number of people who must approve."),
        Column("Decision", ".status.phase", description="Pending, or the decision."),
        Column("Required by", ".spec.expiresAt", description="Time until which people can decide."),
        AGE,
        Column("Server", ".spec.call.server", description="MCPServer that would receive the call.", wide=True),
        Column("Decided by", ".status.decidedBy", description="Users whose decisions counted.", wide=True),
        Column("Digest", ".spec.argumentsDigest", description="Digest that a decision must state.", wide=True),
        Column("Outcome", ".status.outcome", description="Outcome of the call.", wide=True),
    )
    SELECTABLE_FIELDS: ClassVar[tuple[str, ...]] = (".spec.runRef.name", ".spec.call.server")

    kind: Literal["ToolApproval"] = "ToolApproval"
    spec: ToolApprovalSpec
    status: ToolApprovalStatus = ToolApprovalStatus()
