"""A finding: what an investigation concluded, in a structure that a person and a program can both use."""

from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field

SUMMARY_LIMIT = 1024
"""Characters of a finding's summary (DESIGN section 3: the status carries no more)."""


class Confidence(StrEnum):
    """How far the evidence carries. Inconclusive is an honest outcome, not a failure."""

    HIGH = "High"
    MEDIUM = "Medium"
    LOW = "Low"
    INCONCLUSIVE = "Inconclusive"


class Citation(BaseModel):
    """A quote from the stored result of one tool call of this run."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    call_id: str = Field(alias="callId")
    quote: str


class Claim(BaseModel):
    """One statement of a finding and what it rests on."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    text: str
    citations: tuple[Citation, ...] = ()


class Finding(BaseModel):
    """The structured final analysis of a run.

    `structured` is False when the model's text held no finding in the asked form: then the summary is the text's
    beginning and the confidence Inconclusive, because nothing vouches for more.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    summary: str = Field(max_length=SUMMARY_LIMIT)
    confidence: Confidence = Confidence.INCONCLUSIVE
    claims: tuple[Claim, ...] = ()
    structured: bool = True
