"""Models of scores: those of one investigation, and a summary of a suite by chain."""

from datetime import datetime
from typing import Self
from uuid import UUID

from pydantic import Field

from tarsy.http.models import Body, View
from tarsy.http.views.common import dollars
from tarsy.record.judging.score import ChainScores, MissingTool, ScoringTotals, StoredScore
from tarsy.resources.v1alpha1.scoring import MAX_RESCORE_DAYS


class MissingToolView(View):
    """A tool that would have helped, as the judge says. Untrusted text."""

    name: str
    why: str

    @classmethod
    def of(cls, tool: MissingTool) -> Self:
        """Converts a missing tool."""
        return cls(name=tool.name, why=tool.why)


class ScoreView(View):
    """One scoring of an investigation by a suite."""

    suite: str = Field(description="Name of the EvalSuite.")
    suite_uid: UUID
    round: int = Field(description="1 for the first scoring by this suite, one more for each that was asked for.")
    state: str = Field(description="Waiting, Started, Completed, Failed, Refused or Expired.")
    current: bool = Field(description="Whether the judge of the suite is still the one that answered.")
    judge: str | None = Field(description="Digest of the judge. Null before the first call.")
    points: int | None = Field(description="0 to 100. Null unless completed.")
    reason: str | None = Field(description="Reason of the judge. Untrusted text.")
    quotes: int = Field(description="Number of quotes from results of tool calls that hold.")
    tags: tuple[str, ...] = Field(description="What went wrong, of a closed list.")
    missing_tools: tuple[MissingToolView, ...]
    problem: str | None = Field(description="Why there is no score yet, or none at all.")
    request: str | None = Field(description="Time of the request. Null if the suite chose the investigation.")
    attempts: int = Field(description="Number of calls of the judge.")
    tokens: int
    cost_usd: float | None = Field(alias="costUSD", description="Cost in US dollars. Null if unknown.")
    cost_complete: bool = Field(description="False if a call did not tell its usage and counts as the most.")
    created_at: datetime
    finished_at: datetime | None

    @classmethod
    def of(cls, found: StoredScore) -> Self:
        """Converts a scoring."""
        score = found.score
        return cls(
            suite=found.suite_name,
            suite_uid=found.suite,
            round=found.round,
            state=found.state.value,
            current=found.current,
            judge=found.judge,
            points=None if score is None else score.points,
            reason=None if score is None else score.reason,
            quotes=0 if score is None else len(score.evidence),
            tags=() if score is None else tuple(tag.value for tag in score.tags),
            missing_tools=() if score is None else tuple(map(MissingToolView.of, score.missing_tools)),
            problem=found.problem,
            request=found.request,
            attempts=found.attempts,
            tokens=found.tokens,
            cost_usd=dollars(found.cost_usd),
            cost_complete=found.cost_complete,
            created_at=found.created_at,
            finished_at=found.finished_at,
        )


class ScoresView(View):
    """The scorings of an investigation: of each suite the one to show first. Advice: nothing else depends on it."""

    namespace: str
    name: str
    uid: UUID
    scores: tuple[ScoreView, ...]


class TagCount(View):
    """Number of scores with a failure tag."""

    tag: str
    scores: int


class ReportedToolView(View):
    """A missing tool over the scores of a chain."""

    name: str = Field(description="Name, as judges call it. Untrusted text.")
    scores: int = Field(description="Number of scores that name it.")
    why: str = Field(description="The newest reason. Untrusted text.")


class ChainScoresView(View):
    """The newest scores of the investigations of a chain."""

    chain: str
    scores: int = Field(description="Number of investigations with a score.")
    mean: float = Field(description="Mean of the points.")
    lowest: int = Field(description="Lowest points.")
    tags: tuple[TagCount, ...] = Field(description="The most frequent first.")
    missing_tools: tuple[ReportedToolView, ...] = Field(description="The most frequent first.")

    @classmethod
    def of(cls, found: ChainScores) -> Self:
        """Converts the scores of a chain."""
        return cls(
            chain=found.chain,
            scores=found.scores,
            mean=round(found.mean, 1),
            lowest=found.lowest,
            tags=tuple(TagCount(tag=tag.value, scores=number) for tag, number in found.tags.items()),
            missing_tools=tuple(
                ReportedToolView(name=one.name, scores=one.scores, why=one.why) for one in found.missing_tools
            ),
        )


class SuiteScoresView(View):
    """Summary of the scores of a suite: of the last 30 days, by its current judge."""

    namespace: str
    name: str
    scoring: bool = Field(description="Whether the suite has `spec.scoring`.")
    reason: str | None = Field(description="Reason of the condition `Scoring`.")
    message: str | None = Field(description="Message of the condition `Scoring`.")
    judge: str | None = Field(description="Digest of the judge as it is now.")
    scored: int = Field(description="Number of scores on record, of all judges.")
    waiting: int
    failed: int
    tokens_today: int = Field(description="Tokens used and reserved today (UTC).")
    tokens_budget: int | None = Field(description="Limit of a day.")
    cost_usd_today: float | None = Field(alias="costUSDToday", description="US dollars used and reserved today (UTC).")
    cost_usd_budget: float | None = Field(alias="costUSDBudget", description="Limit of a day. Null without one.")
    chains: tuple[ChainScoresView, ...]

    @classmethod
    def totals(cls, found: ScoringTotals) -> dict[str, object]:
        """Returns the numbers of a suite as fields."""
        return {
            "judge": found.judge,
            "scored": found.scored,
            "waiting": found.waiting,
            "failed": found.failed,
            "tokens_today": found.tokens,
            "cost_usd_today": dollars(found.cost_usd),
        }


class RescoreBody(Body):
    """Investigations of a suite to score again."""

    days: int = Field(default=7, ge=1, le=MAX_RESCORE_DAYS, description="Those that ended in these last days.")


class ScoreRequested(View):
    """A request for scores that was taken."""

    namespace: str
    name: str
    requested_at: datetime
