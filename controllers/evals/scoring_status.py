"""Computes the part of an EvalSuite's status about scoring.

Watches: nothing of its own. Decides: the condition `Scoring`. Writes: nothing.
"""

from datetime import UTC, datetime
from uuid import UUID

from tarsy.controllers.evals.scoring import SCORING, Scoring
from tarsy.resources.meta import Condition, set_condition
from tarsy.resources.v1alpha1 import EvalSuite
from tarsy.resources.v1alpha1.common import ConditionType
from tarsy.resources.v1alpha1.scoring import ScoringStatus

_NO_MODELS = ("JudgeUnavailable", "This operator does not call judges.")


def scoring_conditions(
    suite: EvalSuite, conditions: tuple[Condition, ...], scoring: Scoring | None
) -> tuple[Condition, ...]:
    """Returns the conditions of a suite with `Scoring`; without it when the suite does not score.

    Args:
        suite: the object.
        conditions: the other ones, and `Scoring` as it was.
        scoring: None: this operator scores nothing.
    """
    kept = tuple(one for one in conditions if one.type != ConditionType.SCORING)
    if suite.spec.scoring is None:
        return kept
    state = _NO_MODELS if scoring is None else scoring.state(suite)
    if state is None:
        return conditions  # as the last active replica left it
    found = Condition(
        type=ConditionType.SCORING,
        status="True" if state == SCORING else "False",
        reason=state[0],
        message=state[1],
        observed_generation=suite.metadata.generation,
    )
    return set_condition(conditions, found, datetime.now(UTC))


async def scoring_status(suite: EvalSuite, scoring: Scoring | None) -> ScoringStatus | None:
    """Returns the numbers of a suite that scores; None: it does not.

    Args:
        suite: the object.
        scoring: None: this operator scores nothing.

    Raises:
        StoreError: Postgres is unavailable.
    """
    if suite.spec.scoring is None or scoring is None:
        return None
    totals = await scoring.scores.totals(UUID(suite.metadata.uid))
    known = totals.cost_usd > 0 or suite.spec.scoring.budget.cost_usd is not None
    return ScoringStatus(
        scored=totals.scored,
        waiting=totals.waiting,
        failed=totals.failed,
        tokens_today=totals.tokens,
        cost_usd_today=f"{totals.cost_usd:.4f}" if known else None,
        judge=totals.judge,
    )
