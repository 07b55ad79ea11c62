"""Follows the judge of an EvalRun: its reliability, and its answers about each sample.

Watches: nothing of its own. Decides: which findings the judge is asked about next, when it counts as unavailable, and
whether its answers decide. Writes: the agreement with people, once; the calls are made by `judge_queue`.

The labelled findings come first. No sample ends before it is known what the answers are worth.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from tarsy.controllers.evals.judge_queue import JudgeOrder, JudgeQueue
from tarsy.controllers.machinery.cache import Key
from tarsy.evals.agreement import JudgeAgreement, judge_budget_spent, measure_agreement
from tarsy.evals.cases import FrozenJudge
from tarsy.evals.checklist import CheckedAnswer, judge_checks, judged_text, unanswered
from tarsy.evals.expectations import Checked
from tarsy.record.finding import Finding
from tarsy.runtime.judge_call import stored_answer
from tarsy.store.judging.eval_rows import EvalRunRecord
from tarsy.store.judging.judge_calls import INTERRUPTED, JudgeCall, JudgeItem, JudgeUsage

MOST_ATTEMPTS = 3
AGAIN_SECONDS = 10.0
"""Seconds after a failed call until the next attempt, doubled after each."""


@dataclass(frozen=True, slots=True)
class ItemAnswer:
    """Holds the result for an item: the answers, or the reason why the judge cannot be asked."""

    answers: tuple[CheckedAnswer, ...] | None = None
    problem: str = ""


class RunJudge:
    """The judge of one EvalRun, at one look.

    Args:
        key: of the EvalRun.
        run: its uid.
        judge: as frozen.
        newest: the newest call about each item.
        usage: of all calls.
        queue: makes calls.
    """

    def __init__(
        self,
        key: Key,
        run: UUID,
        judge: FrozenJudge,
        newest: Mapping[JudgeItem, JudgeCall],
        usage: JudgeUsage,
        queue: JudgeQueue,
    ) -> None:
        self._key = key
        self._run = run
        self._judge = judge
        self._newest = newest
        self._spent = judge_budget_spent(judge.budget, usage)
        self._queue = queue
        self.agreement: JudgeAgreement | None = None

    @classmethod
    async def of(cls, key: Key, record: EvalRunRecord, judge: FrozenJudge, queue: JudgeQueue) -> "RunJudge":
        """Reads what the judge of a run has answered, and decides what that is worth, if it can be decided.

        Args:
            key: of the EvalRun.
            record: the run as stored.
            judge: as frozen.
            queue: makes calls.

        Raises:
            StoreError: Postgres is unavailable.
        """
        if queue.calls is None:
            made = cls(key, record.id, judge, {}, JudgeUsage(), queue)
            text = "The judge cannot be called: this operator does not call judges."
            made.agreement = JudgeAgreement(role="Unavailable" if judge.gates else "Informs", sentence=text)
            return made
        newest, usage = await queue.calls.newest(record.id), await queue.calls.usage(record.id)
        made = cls(key, record.id, judge, newest, usage, queue)
        made.agreement = agreement_of(record)
        if made.agreement is None and (measured := made._measured()) is not None:
            await queue.calls.agree(record.id, measured.model_dump(mode="json"))
            made.agreement = measured
        return made

    def checks(self, case: str, sample: int, finding: Finding) -> tuple[Checked, ...] | None:
        """Returns the answers of the judge about a sample as checks; None: they are not there yet, and are asked for.

        Args:
            case: name of the case.
            sample: number of the sample.
            finding: of the sample.
        """
        agreement = self.agreement
        if agreement is None:
            return None
        if agreement.role == "Unavailable":
            return unanswered(agreement.sentence, gates=True)
        found = self._item(JudgeItem(case, "sample", sample), judged_text(finding))
        if found is None:
            return None
        if found.answers is None:
            return unanswered(f"The judge could not be asked: {found.problem}", gates=agreement.gates)
        return judge_checks(self._judge.checklist, found.answers, gates=agreement.gates)

    def _measured(self) -> JudgeAgreement | None:
        """Returns the agreement with people; None: answers about labelled findings are missing, and are asked for."""
        labels = self._judge.labels
        found = [self._item(JudgeItem(one.case, "label", one.number), one.finding) for one in labels]
        known = [one for one in found if one is not None]
        if len(known) < len(found):
            return None
        return measure_agreement(
            [one.answers for one in labels],
            [one.answers for one in known],
            gates=self._judge.gates,
            least=self._judge.agreement_min,
            unavailable=next((one.problem for one in known if one.answers is None), ""),
        )

    def _item(self, item: JudgeItem, text: str) -> ItemAnswer | None:
        """Returns what is known of an item; None: a call about it is under way, waits, or is asked for now."""
        newest = self._newest.get(item)
        if newest is not None and newest.answers is not None:
            return ItemAnswer(answers=tuple(map(stored_answer, newest.answers)))
        if newest is not None and self._is_running(newest):
            return None
        if newest is not None and newest.attempt >= MOST_ATTEMPTS:
            return ItemAnswer(problem=newest.problem or INTERRUPTED)
        if self._spent is not None:
            return ItemAnswer(problem=self._spent)
        if newest is None or newest.state == "started" or newest.seconds_ago >= _pause(newest.attempt):
            self._queue.ask(JudgeOrder(self._key, self._run, item, self._judge, text))
        return None

    def _is_running(self, newest: JudgeCall) -> bool:
        """Returns whether a call has not ended; one of another controller never will."""
        calls = self._queue.calls
        return newest.state == "started" and calls is not None and newest.owner == calls.owner


def agreement_of(record: EvalRunRecord) -> JudgeAgreement | None:
    """Returns what the answers of the judge of a run are worth; None: there is no judge, or it is not decided."""
    return None if record.agreement is None else JudgeAgreement.model_validate(record.agreement)


def _pause(attempt: int) -> float:
    return AGAIN_SECONDS * float(2 ** (attempt - 1))


def judge_lines(agreement: JudgeAgreement | None) -> Sequence[str]:
    """Returns what a summary says of the judge."""
    return () if agreement is None else (agreement.sentence,)
