"""Scores investigations that have ended, by the judges of suites with `spec.scoring`.

Watches: nothing of its own; it looks at all suites every few seconds while this replica is active. Decides: which
investigations are scored next, whether the judge may read them, and whether the budget of the day allows the call.
Writes: the scores into the database, a call before it is made; then it queues the EvalSuite.

Decision: nothing else reads a score. It changes no finding, confidence, calibration, promotion or EvalRun.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from uuid import UUID

from tarsy.controllers.evals.judge_provider import find_judge
from tarsy.controllers.machinery.cache import Cache, Key
from tarsy.controllers.readiness.provider_checks import provider_plan_of
from tarsy.controllers.runs.authorization import authorization_refusal, trace_read
from tarsy.controllers.runs.inputs import NotYet
from tarsy.engine.ports import Models
from tarsy.evals.scoring import (
    MAX_CALLS_SHOWN,
    ScoredCall,
    ScoredRun,
    ScoreRequest,
    judge_digest,
    score_request,
    scoring_provider,
)
from tarsy.kube.client import ApiError, KubeClient
from tarsy.plan.errors import FieldPath
from tarsy.plan.model import ProviderPlan
from tarsy.plan.reach import read_plan
from tarsy.plan.what_if import is_stranger
from tarsy.record.judging.score import ScoreState
from tarsy.record.quota import QUOTA_EXCEEDED, QuotaRefused
from tarsy.record.run import InvestigationRecord
from tarsy.resources.v1alpha1 import EvalSuite, LLMProvider
from tarsy.resources.v1alpha1.scoring import SuiteScoring
from tarsy.runtime.judge_call import JUDGE_LEASE_SECONDS
from tarsy.runtime.score_call import call_for_score, score_reservation, score_spending
from tarsy.store.errors import StoreError
from tarsy.store.judging.scores import EndedScore, ScoreItem, ScoreReservation, Scores, ScoreSubject
from tarsy.store.quotas import HOLD_SECONDS

_log = logging.getLogger(__name__)

ROUND_SECONDS = 5.0
UNAVAILABLE_SECONDS = 60.0
"""Seconds until a judge whose provider refused a call is called again."""

AGAIN_SECONDS = 30.0
"""Seconds after a failed call until the next one about the same investigation, doubled after each."""

MOST_FAILURES = 3
_AT_ONCE = 2
_CALLS_A_ROUND = 5

SCORING = ("Scoring", "Investigations are scored when they have ended.")
DISABLED = ("Disabled", "spec.scoring.enabled is false; set it to true to score investigations that end from then on.")


@dataclass(frozen=True, slots=True)
class _Judge:
    """The judge of a suite as it is now."""

    suite: EvalSuite
    scoring: SuiteScoring
    provider: ProviderPlan
    digest: str

    @property
    def uid(self) -> UUID:
        return UUID(self.suite.metadata.uid)

    def asked(self, subject: ScoreSubject) -> ScoreRequest:
        """Builds the request about a run."""
        assert self.suite.spec.judge is not None
        calls = [ScoredCall(one.tool, one.arguments, one.result, one.failed) for one in subject.calls]
        run = ScoredRun(
            subject.alert_type, subject.alert, subject.finding, subject.offered, calls, calls_made=subject.calls_made
        )
        return score_request(run, self.suite.spec.judge.checklist, self.provider)


class Scoring:
    """Scores for all suites.

    Args:
        client: the Kubernetes API.
        cache: of all objects.
        scores: the stored scores.
        models: clients for LLMProviders.
        mask: takes secrets out of what a judge says.
        wake: is called with the key of a suite whose scores have changed.
        require_author: whether a suite without a stamped author scores nothing.
    """

    def __init__(
        self,
        client: KubeClient,
        cache: Cache,
        scores: Scores,
        models: Models,
        mask: Callable[[str], str],
        wake: Callable[[Key], None],
        *,
        require_author: bool,
    ) -> None:
        self._client = client
        self._cache = cache
        self.scores = scores
        self._models = models
        self._mask = mask
        self._wake = wake
        self._require_author = require_author
        self._states: dict[str, tuple[str, str]] = {}
        self._paused: dict[str, float] = {}
        self._places = asyncio.Semaphore(_AT_ONCE)

    def state(self, suite: EvalSuite) -> tuple[str, str] | None:
        """Returns reason and message of the condition `Scoring`; None: this replica has not looked yet."""
        return self._states.get(suite.metadata.uid)

    async def request(self, run: InvestigationRecord, request: str) -> bool | None:
        """Asks for another score of an investigation by each suite that scores its chain.

        Args:
            run: the investigation.
            request: tells it from other requests.

        Returns:
            Whether there is such a suite; None: that is not known yet.
        """
        keys = [key for key in self._cache.keys_of(EvalSuite.KIND) if key.namespace == run.namespace]
        suites = [self._cache.get(EvalSuite, key.namespace, key.name) for key in keys]
        wanted = [
            suite
            for suite in suites
            if suite is not None and suite.spec.scoring is not None and suite.spec.scoring.enabled
            if run.chain in suite.spec.scoring.chains
        ]
        if any(self.state(suite) in (None, DISABLED) for suite in wanted):
            return None
        for suite in wanted:
            await self.scores.request(UUID(suite.metadata.uid), run.id, request)
        return bool(wanted)

    async def round(self) -> None:
        """Scores what waits, some of each suite."""
        keys = self._cache.keys_of(EvalSuite.KIND)
        found = [self._cache.get(EvalSuite, key.namespace, key.name) for key in keys]
        suites = [suite for suite in found if suite is not None and suite.spec.scoring is not None]
        for uid in self._states.keys() - {suite.metadata.uid for suite in suites}:
            await self.scores.withdraw(UUID(uid))
            self._states.pop(uid, None)
        async with asyncio.TaskGroup() as group:
            for suite in suites:
                group.create_task(self._look(suite))
        await self.scores.purge()

    async def _look(self, suite: EvalSuite) -> None:
        """Scores for one suite, and notes why it does not."""
        uid, key = suite.metadata.uid, Key(suite.KIND, suite.metadata.namespace, suite.metadata.name)
        try:
            async with self._places:
                state = await self._suite(suite, key)
        except NotYet as refusal:
            state = (refusal.reason, refusal.message)
        except (ApiError, StoreError) as error:
            _log.warning("scoring of %s waits: %s", key, error)
            return
        if self._states.get(uid) != state:
            self._states[uid] = state
            self._wake(key)

    async def _suite(self, suite: EvalSuite, key: Key) -> tuple[str, str]:
        scoring = suite.spec.scoring
        assert scoring is not None
        if not scoring.enabled:
            if self._states.get(suite.metadata.uid) != DISABLED:
                await self.scores.withdraw(UUID(suite.metadata.uid))
            return DISABLED
        judge = self._judge(suite, scoring)
        namespace = await self._client.find("Namespace", None, key.namespace) or {}
        namespace_uid = namespace.get("metadata", {}).get("uid", "")
        await self.scores.enroll(judge.uid, namespace_uid, suite.metadata.name, judge.digest)
        await self.scores.pick(judge.uid, scoring.chains, scoring.percent)
        if (again := scoring.rescore) is not None:
            asked = again.requested_at.isoformat()
            await self.scores.request_days(judge.uid, scoring.chains, again.requested_at, again.days, asked)
        if (until := self._paused.get(suite.metadata.uid)) is not None:
            if asyncio.get_running_loop().time() < until:
                return self._states.get(suite.metadata.uid, SCORING)
            del self._paused[suite.metadata.uid]
        allowed = False
        for _ in range(_CALLS_A_ROUND):
            item = await self.scores.next(judge.uid)
            if item is None:
                break
            if not allowed:
                await self._check_author(suite)
                allowed = True
            stop = await self._score(judge, item)
            self._wake(key)
            if stop is not None:
                return stop
        return SCORING

    def _judge(self, suite: EvalSuite, scoring: SuiteScoring) -> _Judge:
        """Resolves the judge of a suite.

        Raises:
            NotYet: it cannot be used; the message names the field and the remedy.
        """
        assert suite.spec.judge is not None
        provider = scoring_provider(provider_plan_of(find_judge(suite, self._cache)))
        if scoring.budget.cost_usd is not None and provider.rates is None:
            where = f"LLMProvider {provider.ref.namespace}/{provider.ref.name}"
            raise NotYet(
                "RatesMissing",
                f"spec.scoring.budget.costUSD: the rates of {where} are not known; set spec.rates there, or remove the "
                "limit",
            )
        return _Judge(suite, scoring, provider, judge_digest(provider, suite.spec.judge.checklist))

    async def _check_author(self, suite: EvalSuite) -> None:
        """Checks that the author of a suite may use its judge and may read what the judge reads.

        Raises:
            NotYet: they may not.
        """
        assert suite.spec.judge is not None
        meta = suite.metadata
        every = trace_read("", FieldPath.of(suite) / "scoring" / "chains")
        refused = await authorization_refusal(
            suite.spec.author,
            [Key(LLMProvider.KIND, meta.namespace, suite.spec.judge.llm_provider_ref.name)],
            self._client,
            required=self._require_author,
            reads=[every],
        )
        if refused is not None:
            raise NotYet(*refused)

    async def _score(self, judge: _Judge, item: ScoreItem) -> tuple[str, str] | None:
        """Scores one investigation; returns why the suite scores no more for now, None: it goes on."""
        subject = await self.scores.subject(item.investigation, MAX_CALLS_SHOWN)
        if subject is None:
            return None  # its record is gone, and this scoring with it
        if (why := _unreadable(judge, subject)) is not None:
            await self.scores.refuse(judge.uid, item, ScoreState.REFUSED, why)
            return None
        asked = judge.asked(subject)
        most, budget = score_reservation(asked, judge.provider), judge.scoring.budget
        limit = None if budget.cost_usd is None else Decimal(str(budget.cost_usd))
        if most.tokens > budget.tokens or (limit is not None and most.cost_usd is not None and most.cost_usd > limit):
            return _too_small(most, subject.name)
        day = ScoreReservation(budget.tokens, limit)
        spending = score_spending(judge.suite.metadata.namespace, most, judge.provider)
        try:
            attempt = await self.scores.begin(judge.uid, item, judge.digest, most, day, JUDGE_LEASE_SECONDS, spending)
        except QuotaRefused as no_room:
            self._paused[judge.suite.metadata.uid] = asyncio.get_running_loop().time() + HOLD_SECONDS
            return QUOTA_EXCEEDED, f"spec.scoring: {no_room}"
        if attempt == "spent":
            text = "The budget of the day (UTC) does not allow another call; scoring goes on tomorrow, or raise it."
            return "BudgetSpent", f"spec.scoring.budget: {text}"
        if attempt is None:
            return None
        ended = await call_for_score(asked, judge.provider, self._models, self._mask)
        rates = judge.provider.rates is not None
        refused = ended.score is None and ended.tokens == 0
        again = _again(item, ended)
        await self.scores.end(judge.uid, item, attempt, ended, again_seconds=again, rates=rates, spending=spending.id)
        if not refused:
            return None
        self._paused[judge.suite.metadata.uid] = asyncio.get_running_loop().time() + UNAVAILABLE_SECONDS
        return "JudgeUnavailable", f"spec.judge.llmProviderRef.name: {ended.problem}"


def _again(item: ScoreItem, ended: EndedScore) -> float | None:
    """Returns the seconds until the next call about an investigation; None: there is none."""
    if ended.tokens == 0:
        return UNAVAILABLE_SECONDS
    if item.failures + 1 >= MOST_FAILURES:
        return None
    return AGAIN_SECONDS * float(2**item.failures)


def _unreadable(judge: _Judge, subject: ScoreSubject) -> str | None:
    """Returns why a judge may not read a run; None: it may."""
    try:
        plan = read_plan(subject.plan)
    except ValueError:
        return "A newer version of TARSy made the plan of this investigation, and this one cannot read it."
    if not is_stranger(judge.provider, plan):
        return None
    return (
        f"Tools of namespace {plan.chain.namespace} answered the calls of this investigation with its rights, so their "
        f"results may only be sent to LLMProviders of that namespace, and not to {judge.provider.ref.namespace}/"
        f"{judge.provider.ref.name}."
    )


def _too_small(most: ScoreReservation, name: str) -> tuple[str, str]:
    cost = "" if most.cost_usd is None else f" and {most.cost_usd.normalize():f} US dollars"
    text = f"the score of Investigation {name} can use up to {most.tokens:,} tokens{cost}; raise the budget to that"
    return "BudgetTooSmall", f"spec.scoring.budget: {text}"
