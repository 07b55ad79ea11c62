"""Defines the scoring of a suite: its judge reads investigations that have ended, and gives each a score.

Decision: a score is advice. It changes no finding, confidence, calibration, promotion or EvalRun: a judge reads text
that anybody may have written, and has not been measured against people on it.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from tarsy.resources.schema import Lenient, Model, ObjectName, Time, Unique

MAX_SCORED_CHAINS = 32
MAX_RESCORE_DAYS = 30
SCORE_REQUEST = "tarsy.dev/score"
"""Annotation of an Investigation that asks for another score; the operator removes it when it has taken the request."""

Count = Annotated[int, Field(ge=0, json_schema_extra={"format": "int64"})]


class ScoringBudget(Model):
    """Usage limits of scoring in one day (UTC)."""

    tokens: Annotated[int, Field(ge=1, le=1_000_000_000_000, json_schema_extra={"format": "int64"})] = Field(
        description="Total tokens of one day. Each call first reserves the most that it can use, and releases the "
        "unused part afterwards."
    )
    cost_usd: Annotated[float, Field(ge=0.0001, le=1_000_000)] | None = Field(
        default=None,
        alias="costUSD",
        description="Cost of one day in US dollars, reserved like tokens. Requires rates on the LLMProvider.",
    )


class Rescore(Model):
    """A request for another score of all investigations of some days. Each time is a request of its own."""

    requested_at: Time = Field(description="Time of the request. Investigations that ended before it are scored.")
    days: Annotated[int, Field(ge=1, le=MAX_RESCORE_DAYS)] = Field(
        default=7,
        description="Number of days before the request. At most the newest 1,000 investigations of these "
        "days are scored.",
    )


class SuiteScoring(Model):
    """Investigations that the judge of the suite scores when they have ended."""

    enabled: bool = Field(default=False, description="Whether investigations that end from now on are scored.")
    chains: Annotated[tuple[ObjectName, ...], Unique()] = Field(
        min_length=1,
        max_length=MAX_SCORED_CHAINS,
        description="Names of Chains, of this namespace or of the library. Investigations in this namespace that "
        "follow one of them are scored.",
    )
    percent: Annotated[int, Field(ge=1, le=100)] = Field(
        default=100, description="Percentage of the investigations to score, selected by their uids."
    )
    budget: ScoringBudget = Field(description="Usage limits of one day (UTC). When they are reached, scoring waits.")
    rescore: Rescore | None = Field(
        default=None,
        description="Scores investigations again, for example after a change of the judge. `kubectl tarsy scores NAME "
        "--again` sets it.",
    )


class ScoringStatus(Lenient):
    """Progress of scoring."""

    scored: Count = Field(default=0, description="Number of scores on record.")
    waiting: Count = Field(default=0, description="Number of investigations that wait for their score.")
    failed: Count = Field(default=0, description="Number of investigations that could not be scored.")
    tokens_today: Count = Field(default=0, description="Tokens used and reserved today (UTC).")
    cost_usd_today: Annotated[str, StringConstraints(max_length=32)] | None = Field(
        default=None, alias="costUSDToday", description="US dollars used and reserved today (UTC), if rates are known."
    )
    judge: Annotated[str, StringConstraints(max_length=64)] | None = Field(
        default=None, description="Digest of the judge as it is now: its model, its instructions and its checklist."
    )
