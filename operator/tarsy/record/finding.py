"""A finding: what an investigation concluded, in a structure that a person and a program can both use.

A model writes the summary, the claims and their citations; everything else is what the record said when the citations
were checked against it (`tarsy.engine.findings.citations`). The one never comes from the other: what a model writes
about its own support is not read.
"""

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

SUMMARY_LIMIT = 1024
"""Characters of a finding's summary (DESIGN section 3: the status carries no more)."""


class Confidence(StrEnum):
    """How far the evidence carries. Inconclusive is an honest outcome, not a failure."""

    HIGH = "High"
    MEDIUM = "Medium"
    LOW = "Low"
    INCONCLUSIVE = "Inconclusive"


@dataclass(frozen=True, slots=True)
class Evidence:
    """What one tool call of a run returned, as stored: `interaction` is its row, the rest says whose call it was."""

    interaction: UUID
    stage: str
    agent: str
    tool: str
    result: str


class Citation(BaseModel):
    """A quote from the stored result of one tool call of this run.

    `supported`: the call exists and its result holds the quote; `reason` says why not. `interaction`, `stage`, `agent`
    and `tool` are the record's words about the call, absent when there is none.
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


class Claim(BaseModel):
    """One statement of a finding and what it rests on; `supported` when one of its citations holds."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    text: str
    citations: tuple[Citation, ...] = ()
    supported: bool = False


class Finding(BaseModel):
    """The structured final analysis of a run.

    `structured` is False when the model's text held no finding in the asked form: then the summary is the text's
    beginning and the confidence Inconclusive, because nothing vouches for more. `no_tool_called` is True when agents of
    the run had tool servers and none of them called a tool. `notes` say what was changed about what the model wrote,
    and why.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    summary: str = Field(max_length=SUMMARY_LIMIT)
    confidence: Confidence = Confidence.INCONCLUSIVE
    claims: tuple[Claim, ...] = ()
    structured: bool = True
    no_tool_called: bool = False
    notes: tuple[str, ...] = ()

    @property
    def supported_claims(self) -> int:
        """How many claims have a citation that holds."""
        return sum(claim.supported for claim in self.claims)
