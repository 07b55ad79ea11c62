"""Reads suites, the table of case by revision of one, and the samples of one run.

Decision: a suite and a run are found by their objects, so what the Kubernetes API forgot is not shown under the name of
something new. The table contains results of EvalRuns, so it requires the right to list those too.
"""

from typing import TypeVar
from uuid import UUID

from pydantic import Field

from tarsy.http.authentication.identity import Permission
from tarsy.http.errors import NotFound
from tarsy.http.models import PRODUCT_GROUP, Query
from tarsy.http.route import CheckedRequest, Route
from tarsy.http.routes import paging
from tarsy.http.routes.objects import list_permission, may_list, paginate, sort_key, valid_objects
from tarsy.http.routes.parameters import Limit, ListQuery, Token
from tarsy.http.views.common import ConditionView
from tarsy.http.views.evals import (
    EvalRunView,
    EvalSampleView,
    EvalSuiteItem,
    EvalSuiteList,
    EvalSuiteView,
    MeasuredRun,
    PromotedChain,
    SuiteCase,
    SuiteCell,
    WaitingRun,
    measured,
)
from tarsy.resources.parse import InvalidResource, parse_as
from tarsy.resources.schema import LabelName
from tarsy.resources.v1alpha1 import Chain, EvalRun, EvalSuite
from tarsy.resources.v1alpha1.eval_suite import MAX_CASES
from tarsy.store.judging.eval_rows import StoredCell
from tarsy.store.judging.evals import Evals
from tarsy.store.judging.judge_calls import JudgeCalls, JudgeUsage

_E = TypeVar("_E", EvalSuite, EvalRun)
MAX_RUNS = 20
MOST_WAITING = 20


class SuiteQuery(Query):
    """Number of runs in the table."""

    runs: int = Field(default=10, ge=1, le=MAX_RUNS, description="Maximum number of runs, the newest first.")


class SamplesQuery(Query):
    """Case, and page of the samples."""

    case: LabelName | None = Field(default=None, description="Only samples of this case.")

    limit: Limit = 100
    token: Token | None = Field(default=None, alias="continue")


async def list_eval_suites(ask: CheckedRequest) -> EvalSuiteList:
    """Returns a page of the suites."""
    query = ask.query(ListQuery)
    suites = await valid_objects(ask, EvalSuite, query.namespace)
    found, token = paginate(f"{EvalSuite.PLURAL}/{query.namespace}", query, suites, sort_key, 2)
    return EvalSuiteList(items=tuple(map(EvalSuiteItem.of, found)), next=token)


async def get_eval_suite(ask: CheckedRequest) -> EvalSuiteView:
    """Returns a suite as a table of case by revision."""
    await ask.services.access.demand(ask.caller, list_permission(EvalRun), ask.namespace)
    suite = await configured(ask, EvalSuite)
    evals = Evals(ask.services.pool)
    runs = await evals.suite_runs(UUID(suite.metadata.uid), ask.query(SuiteQuery).runs)
    cells: dict[UUID, list[StoredCell]] = {record.id: [] for record, _ in runs}
    for cell in await evals.cells(list(cells)):
        cells[cell.run].append(cell)
    judged = await _judges(ask).usages(list(cells))
    columns = [
        measured(record, cells[record.id], baseline, suite.status.digest, judged.get(record.id, JudgeUsage()))
        for record, baseline in runs
    ]
    now = [case.name for case in suite.spec.cases]
    older = sorted({name for _, of_run in columns for name in of_run} - set(now))
    shown = sorted([*now, *older[: 2 * MAX_CASES - len(now)]])
    begun = {str(record.id) for record, _ in runs}
    return EvalSuiteView(
        suite=EvalSuiteItem.of(suite),
        pass_rate_min=suite.spec.gate.pass_rate_min,
        confident_wrong_max=suite.spec.gate.confident_wrong_max,
        chains=await _chains(ask, suite),
        runs=tuple(column for column, _ in columns),
        cases=tuple(_row(name, name in now, columns) for name in shown),
        omitted_cases=len(now) + len(older) - len(shown),
        waiting=tuple(
            WaitingRun.of(run)
            for run in sorted(await valid_objects(ask, EvalRun, (ask.namespace,)), key=sort_key)
            if run.spec.suite_ref.name == ask.name and run.status.phase in (None, "Pending")
            if run.metadata.uid not in begun
        )[:MOST_WAITING],
    )


async def get_eval_run(ask: CheckedRequest) -> EvalRunView:
    """Returns a run with a page of its samples."""
    query, run, evals = ask.query(SamplesQuery), await configured(ask, EvalRun), Evals(ask.services.pool)
    identity = UUID(run.metadata.uid)
    record, question, after = await evals.run(identity), f"samples/{identity}/{query.case or ''}", ("", 0)
    if query.token is not None:
        case, number = paging.decode_continue(question, query.token, 2)
        after = (case, paging.number(number))
    samples = await evals.sample_page(identity, query.limit + 1, after, query.case)
    token = None
    if len(samples) > query.limit:
        samples = samples[: query.limit]
        token = paging.encode_continue(question, (samples[-1].case_name, str(samples[-1].sample)))
    found: MeasuredRun | None = None
    if record is not None:
        baseline = run.spec.baseline.eval_run_ref.name if run.spec.baseline else None
        suite = await ask.services.kube.find(EvalSuite.KIND, ask.namespace, run.spec.suite_ref.name)
        digest = ((suite or {}).get("status") or {}).get("digest")
        usage = await _judges(ask).usage(identity)
        found, _ = measured(record, await evals.cells([identity]), baseline, digest, usage)
    return EvalRunView(
        namespace=ask.namespace,
        name=ask.name,
        suite=run.spec.suite_ref.name,
        phase=run.status.phase,
        conditions=tuple(map(ConditionView.of, run.status.conditions)),
        run=found,
        samples=tuple(map(EvalSampleView.of, samples)),
        next=token,
    )


def _judges(ask: CheckedRequest) -> JudgeCalls:
    """Returns the stored calls of judges; nothing here makes one, so they have no owner."""
    return JudgeCalls(ask.services.pool, UUID(int=0))


async def _chains(ask: CheckedRequest, suite: EvalSuite) -> tuple[PromotedChain, ...] | None:
    if not await may_list(ask, Chain, (ask.namespace,)):
        return None
    found = [
        chain
        for chain in await valid_objects(ask, Chain, (ask.namespace,))
        if (promotion := chain.spec.promotion) is not None
        and promotion.suite_ref is not None
        and promotion.suite_ref.name == suite.metadata.name
    ]
    return tuple(PromotedChain.of(chain) for chain in sorted(found, key=sort_key))


def _row(name: str, in_suite: bool, columns: list[tuple[MeasuredRun, dict[str, SuiteCell]]]) -> SuiteCase:
    return SuiteCase(name=name, in_suite=in_suite, cells=tuple(cells.get(name) for _, cells in columns))


async def configured(ask: CheckedRequest, kind: type[_E]) -> _E:
    """Returns the EvalSuite or EvalRun in the path.

    Args:
        ask: the request.
        kind: its class.

    Raises:
        NotFound: there is none, or it is invalid.
    """
    where = f"{kind.KIND} {ask.namespace}/{ask.name}"
    found = await ask.services.kube.find(kind.KIND, ask.namespace, ask.name)
    if found is None:
        raise NotFound(f"there is no {where}")
    try:
        return parse_as(kind, found)
    except InvalidResource:
        raise NotFound(f"{where} is not valid; `kubectl get` shows it") from None


ROUTES = (
    Route(
        method="GET",
        path="/evalsuites",
        operation="listEvalSuites",
        summary="List suites and their last verdicts",
        handler=list_eval_suites,
        permission=list_permission(EvalSuite),
        query=ListQuery,
        response=EvalSuiteList,
    ),
    Route(
        method="GET",
        path="/namespaces/{namespace}/evalsuites/{name}",
        operation="getEvalSuite",
        summary="Get a suite as a table of case by revision, with verdicts and the chains that must pass it",
        handler=get_eval_suite,
        permission=Permission("get", EvalSuite.PLURAL, group=PRODUCT_GROUP),
        query=SuiteQuery,
        response=EvalSuiteView,
    ),
    Route(
        method="GET",
        path="/namespaces/{namespace}/evalruns/{name}",
        operation="getEvalRun",
        summary="Get an evaluation run with its samples and their checks",
        handler=get_eval_run,
        permission=Permission("get", EvalRun.PLURAL, group=PRODUCT_GROUP),
        query=SamplesQuery,
        response=EvalRunView,
    ),
)
