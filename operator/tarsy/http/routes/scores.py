"""Returns the scores of an investigation and of a suite, and requests new ones.

Decision: a request is written into the object with the caller's own token (`tarsy.http.score_entry`).
"""

from datetime import UTC, datetime
from uuid import UUID

from tarsy.http.authentication.identity import Permission
from tarsy.http.errors import Conflict, NotFound
from tarsy.http.failures import as_caller_said
from tarsy.http.models import PRODUCT_GROUP
from tarsy.http.route import CheckedRequest, Route
from tarsy.http.routes.evals import configured
from tarsy.http.routes.investigations import RunUidQuery
from tarsy.http.routes.lookup import located
from tarsy.http.score_entry import investigation_patch, suite_patch, why_not_rescored, why_not_scored
from tarsy.http.views.scores import (
    ChainScoresView,
    RescoreBody,
    ScoreRequested,
    ScoresView,
    ScoreView,
    SuiteScoresView,
)
from tarsy.kube.client import ApiError
from tarsy.resources.meta import condition
from tarsy.resources.v1alpha1 import EvalSuite, Investigation
from tarsy.resources.v1alpha1.common import ConditionType
from tarsy.store.judging.scores import Scores


async def get_score(ask: CheckedRequest) -> ScoresView:
    """Returns the scorings of an investigation."""
    run = await located(ask, ask.query(RunUidQuery).uid)
    found = await Scores(ask.services.pool).of_run(run)
    return ScoresView(namespace=ask.namespace, name=ask.name, uid=run, scores=tuple(map(ScoreView.of, found)))


async def get_suite_scores(ask: CheckedRequest) -> SuiteScoresView:
    """Returns what the scores of a suite tell by chain."""
    suite = await configured(ask, EvalSuite)
    scores, identity = Scores(ask.services.pool), UUID(suite.metadata.uid)
    spec, state = suite.spec.scoring, condition(suite.status.conditions, ConditionType.SCORING)
    numbers = SuiteScoresView.totals(await scores.totals(identity))
    return SuiteScoresView.model_validate(
        {
            "namespace": ask.namespace,
            "name": ask.name,
            "scoring": spec is not None,
            "reason": None if state is None else state.reason,
            "message": None if state is None else state.message,
            "tokens_budget": None if spec is None else spec.budget.tokens,
            "cost_usd_budget": None if spec is None else spec.budget.cost_usd,
            "chains": tuple(map(ChainScoresView.of, await scores.report(identity))),
            **numbers,
        }
    )


async def request_score(ask: CheckedRequest) -> ScoreRequested:
    """Asks for another score of an investigation."""
    found = await ask.services.kube.find(Investigation.KIND, ask.namespace, ask.name)
    _raise(why_not_scored(found, f"{ask.namespace}/{ask.name}"))
    assert found is not None
    now = datetime.now(UTC)
    try:
        await ask.as_caller().patch(Investigation.KIND, ask.namespace, ask.name, investigation_patch(found, now))
    except ApiError as error:
        raise as_caller_said(error) from None
    return ScoreRequested(namespace=ask.namespace, name=ask.name, requested_at=now)


async def request_suite_scores(ask: CheckedRequest) -> ScoreRequested:
    """Asks for another score of the investigations of some days."""
    found = await ask.services.kube.find(EvalSuite.KIND, ask.namespace, ask.name)
    _raise(why_not_rescored(found, f"{ask.namespace}/{ask.name}"))
    assert found is not None
    now = datetime.now(UTC)
    try:
        body = suite_patch(found, ask.body(RescoreBody).days, now)
        await ask.as_caller().patch(EvalSuite.KIND, ask.namespace, ask.name, body)
    except ApiError as error:
        raise as_caller_said(error) from None
    return ScoreRequested(namespace=ask.namespace, name=ask.name, requested_at=now)


def _raise(problem: tuple[int, str] | None) -> None:
    """Raises NotFound or Conflict for a problem."""
    if problem is not None:
        raise NotFound(problem[1]) if problem[0] == 404 else Conflict(problem[1])


ROUTES = (
    Route(
        method="GET",
        path="/namespaces/{namespace}/investigations/{name}/score",
        operation="getScore",
        summary="Get the scores of an investigation by judges of suites",
        handler=get_score,
        permission=Permission("get", "investigations", "score"),
        query=RunUidQuery,
        response=ScoresView,
        aggregated=True,
    ),
    Route(
        method="POST",
        path="/namespaces/{namespace}/investigations/{name}/score",
        operation="requestScore",
        summary="Request another score of an investigation, with the caller's own token",
        handler=request_score,
        permission=Permission("patch", Investigation.PLURAL, group=PRODUCT_GROUP),
        response=ScoreRequested,
        status=202,
    ),
    Route(
        method="GET",
        path="/namespaces/{namespace}/evalsuites/{name}/scores",
        operation="getSuiteScores",
        summary="Get the scores of a suite by chain: points, failure tags, missing tools",
        handler=get_suite_scores,
        permission=Permission("get", "evalsuites", "scores"),
        response=SuiteScoresView,
        aggregated=True,
    ),
    Route(
        method="POST",
        path="/namespaces/{namespace}/evalsuites/{name}/scores",
        operation="requestSuiteScores",
        summary="Request new scores of the investigations of some days, with the caller's own token",
        handler=request_suite_scores,
        permission=Permission("patch", EvalSuite.PLURAL, group=PRODUCT_GROUP),
        body=RescoreBody,
        response=ScoreRequested,
        status=202,
    ),
)
