"""Translates scores to and from the rows that store them."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import asyncpg

from tarsy.record.judging.score import (
    ChainScores,
    FailureTag,
    MissingTool,
    ReportedTool,
    Score,
    ScoreState,
    StoredScore,
)

MAX_REPORTED_TOOLS: Final = 20


def stored_score(score: Score) -> dict[str, Any]:
    """Returns the answer of a judge as it is stored, beside its points."""
    return {
        "reason": score.reason,
        "evidence": list(score.evidence),
        "tags": [tag.value for tag in score.tags],
        "missing_tools": [{"name": one.name, "why": one.why} for one in score.missing_tools],
    }


def _tags(answer: Mapping[str, Any]) -> tuple[FailureTag, ...]:
    """Returns the tags that this version knows: a newer one may have stored others."""
    return tuple(tag for tag in FailureTag if tag.value in answer["tags"])


def _tools(answer: Mapping[str, Any]) -> tuple[MissingTool, ...]:
    return tuple(MissingTool(one["name"], one["why"]) for one in answer["missing_tools"])


def read_score_row(row: asyncpg.Record) -> StoredScore:
    """Reads a row of the table `score`, with `current`."""
    answer = row["answer"]
    score = None
    if answer is not None:
        score = Score(row["points"], answer["reason"], tuple(answer["evidence"]), _tags(answer), _tools(answer))
    return StoredScore(
        suite=row["suite"],
        suite_name=row["suite_name"],
        round=row["round"],
        state=ScoreState(row["state"]),
        current=row["current"],
        judge=row["judge"],
        score=score,
        problem=row["problem"],
        request=row["requested_by"],
        attempts=row["attempts"],
        tokens=row["tokens"],
        cost_usd=row["cost_usd"],
        cost_complete=row["cost_complete"],
        created_at=row["created_at"],
        finished_at=row["finished_at"],
    )


def scores_of_chain(chain: str, rows: Sequence[asyncpg.Record]) -> ChainScores:
    """Sums up the newest scores of the investigations of a chain.

    Args:
        chain: its name.
        rows: one for each investigation, at least one.
    """
    tags: Counter[FailureTag] = Counter()
    tools: defaultdict[str, list[tuple[datetime, MissingTool]]] = defaultdict(list)
    for row in rows:
        tags.update(_tags(row["answer"]))
        for tool in _tools(row["answer"]):
            tools[tool.name.casefold()].append((row["finished_at"] or datetime.now(UTC), tool))
    reported = []
    for named in tools.values():
        newest = max(named, key=lambda one: one[0])[1]
        reported.append(ReportedTool(newest.name, len(named), newest.why))
    reported.sort(key=lambda one: (-one.scores, one.name))
    points = [row["points"] for row in rows]
    return ChainScores(
        chain,
        len(points),
        sum(points) / len(points),
        min(points),
        dict(sorted(tags.items(), key=lambda one: (-one[1], one[0]))),
        tuple(reported[:MAX_REPORTED_TOOLS]),
    )
