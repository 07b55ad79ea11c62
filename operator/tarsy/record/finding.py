"""Defines the finding, the structured conclusion of an investigation.

A model writes the summary, the claims and their citations. All other fields result from checking the citations against
the record (`tarsy.engine.findings.citations`); statements of a model about its own evidence are ignored.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from tarsy.record.approvals.git_change import ChangeForGit
from tarsy.record.integrity import EvidenceMarks, Integrity

SUMMARY_LIMIT = 1024
"""Maximum characters of a finding's summary, which is part of the size-limited status of the Investigation."""


class Confidence(StrEnum):
    """Confidence in a finding. Inconclusive is a valid outcome, not a failure."""

    HIGH = "High"
    MEDIUM = "Medium"
    LOW = "Low"
    INCONCLUSIVE = "Inconclusive"


@dataclass(frozen=True, slots=True)
class Evidence:
    """Stored result of one tool call, with the id of its row (`interaction`), and the stage and agent that made it.

    `arguments` are those of the call, as they are on record, and `marks` the integrity classes of the result. `later`
    is the latest result of the same call in the run, where that is a state and came after this one. `made_up`: a model
    wrote the result, in a replay.
    """

    interaction: UUID
    stage: str
    agent: str
    tool: str
    result: str
    arguments: str = ""
    marks: EvidenceMarks = field(default_factory=EvidenceMarks)
    later: str | None = None
    made_up: bool = False


class Citation(BaseModel):
    """A quote from the stored result of one tool call of this run.

    `supported`: the call exists and its result contains the quote; otherwise `reason` has the cause. `interaction`,
    `stage`, `agent` and `tool` come from the record, and are absent when the call does not exist. `integrity` tells who
    can write the text that is quoted; None: it is not supported, or was checked by an older version. `replaced`: the
    latest result of the same call in the run no longer contains the quote.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)

    call_id: str = Field(alias="callId")
    quote: str
    supported: bool = False
    reason: str | None = None
    interaction: UUID | None = None
    stage: str | None = None
    agent: str | None = None
    tool: str | None = None
    integrity: Integrity | None = None
    replaced: bool = False


class Claim(BaseModel):
    """One statement of a finding and its citations; `supported` when at least one citation is supported.

    `ungrounded` are names and numbers of a supported claim that occur in none of its supported quotes, in the alert, or
    in the arguments of the cited calls. Such a claim does not raise confidence.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    text: str
    citations: tuple[Citation, ...] = ()
    supported: bool = False
    ungrounded: tuple[str, ...] = ()

    @property
    def contradicted(self) -> bool:
        """Whether a later result of each of its calls no longer contains what it quotes."""
        held = [citation for citation in self.citations if citation.supported]
        return bool(held) and all(citation.replaced for citation in held)

    @property
    def grounded(self) -> bool:
        """Whether the claim is supported, and names nothing that its evidence does not."""
        return self.supported and not self.ungrounded


class Finding(BaseModel):
    """The structured final analysis of a run.

    `structured` is False when the model's text contained no finding in the requested format: then the summary is the
    beginning of the text and the confidence is Inconclusive. `no_tool_called` is True when agents of the run had tool
    servers and no agent called a tool. `notes` list the corrections of the model's finding, with reasons.
    `changes_for_git` come from the record, not from the model: changes of calls that were refused because GitOps
    manages the objects. A finding without any is stored without the field.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)

    summary: str = Field(max_length=SUMMARY_LIMIT)
    confidence: Confidence = Confidence.INCONCLUSIVE
    claims: tuple[Claim, ...] = ()
    structured: bool = True
    no_tool_called: bool = False
    notes: tuple[str, ...] = ()
    changes_for_git: tuple[ChangeForGit, ...] = Field(
        default=(), alias="changesForGit", exclude_if=lambda changes: not changes
    )

    @property
    def integrity(self) -> Integrity | None:
        """The strongest class of its evidence, K before A before X; None without evidence of a known class."""
        held = {one.integrity for claim in self.claims if claim.grounded for one in claim.citations if one.supported}
        return next((one for one in Integrity if one in held), None)

    @property
    def supported_claims(self) -> int:
        """Number of supported claims."""
        return sum(claim.supported for claim in self.claims)
