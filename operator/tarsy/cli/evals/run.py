"""Measures a suite on this machine, without a cluster (`tarsy eval run`).

The plans come from files, the tool calls from cassettes, the answers from the real models. Neither Postgres nor a
Kubernetes API is needed.

| exit status | meaning |
|---|---|
| 0 | the suite passed |
| 1 | it regressed: a floor of the gate is broken, or the comparison with the baseline shows a loss |
| 2 | the suite is insufficient: it cannot show that the candidate is good |
| 3 | an input is wrong, and nothing was measured |
| 4 | an error in TARSy itself |
"""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, assert_never

from tarsy.cli.console import new_console
from tarsy.cli.evals.cases import read_suite
from tarsy.cli.evals.plans import Configuration, missing_rates, plan_suite
from tarsy.cli.evals.table import result_table
from tarsy.cli.objects.ask import KEY_VARIABLE
from tarsy.evals.cases import FrozenJudge
from tarsy.evals.junit import render_junit
from tarsy.evals.result import EvalResult, ResultError, SampleResult, make_result, read_baseline, write_result
from tarsy.evals.suite import Suite, SuiteFile
from tarsy.evals.verdict import CaseSamples, Verdict, decide
from tarsy.llm.registry import ModelRegistry, SecretProblem
from tarsy.plan.model import SecretKey
from tarsy.record.text import clean
from tarsy.resources.v1alpha1.eval_suite import EvalBudget
from tarsy.runtime.in_process.sample import PlannedCase
from tarsy.runtime.in_process.suite_run import SuiteLimits, providers, run_suite

WRONG_INPUT = 3
INTERNAL_ERROR = 4
Format = Literal["json", "junit"]


@dataclass(frozen=True, slots=True)
class Overrides:
    """Options that go before the settings of the suite; None: as the suite says."""

    samples: int | None = None
    parallelism: int | None = None
    tokens: int | None = None
    cost_usd: float | None = None

    def applied(self, settings: SuiteFile) -> SuiteLimits:
        """Returns the limits of a run."""
        budget = settings.budget
        if self.tokens is not None or self.cost_usd is not None:
            budget = EvalBudget(
                tokens=self.tokens or (budget.tokens if budget else None),
                cost_usd=self.cost_usd or (budget.cost_usd if budget else None),
            )
        return SuiteLimits(self.samples or settings.samples, self.parallelism or settings.parallelism, budget)


@dataclass(frozen=True, slots=True)
class Output:
    """A format, and the file that it is written to; None: standard output."""

    format: Format
    file: Path | None = None

    @classmethod
    def parse(cls, text: str) -> Output:
        """Reads `FORMAT` or `FORMAT=FILE`.

        Raises:
            ValueError: the format is unknown.
        """
        name, given, file = text.partition("=")
        if name not in ("json", "junit") or (given and not file):
            raise ValueError(f"{text!r} is not json, junit, json=FILE or junit=FILE")
        return cls("json" if name == "json" else "junit", Path(file) if file else None)


async def measure_folder(
    configuration: Configuration,
    folder: Path,
    *,
    baseline: Path | None = None,
    overrides: Overrides = Overrides(),
    outputs: Sequence[Output] = (),
    keys: Mapping[str, str] | None = None,
) -> int:
    """Measures the suite of a folder; returns the exit status.

    Args:
        configuration: where the plans come from.
        folder: of the cases.
        baseline: result of an earlier measurement; None: only the floors of the gate decide.
        overrides: of the settings of the suite.
        outputs: formats for programs; none: a table on standard output.
        keys: environment variable of each Secret's API key, by name of the Secret.
    """
    read = read_suite(folder)
    planned = plan_suite(read.suite, configuration)
    limits = overrides.applied(read.suite.settings)
    problems = [*read.problems, *planned.problems, *key_problems(planned.cases, keys or {}, planned.judge)]
    if limits.budget is not None and limits.budget.cost_usd is not None:
        problems += missing_rates(planned.cases)
    before: tuple[CaseSamples, ...] | None = None
    if baseline is not None:
        try:
            before = read_baseline(_bytes(baseline), str(baseline), [(c.name, c.digest) for c in read.suite.cases])
        except ResultError as error:
            problems.append(str(error))
    if problems:
        for problem in problems:
            sys.stderr.write(f"{problem}\n")
        return WRONG_INPUT
    result = await measure_cases(planned.cases, read.suite, limits, before=before, keys=keys or {}, judge=planned.judge)
    write_outputs(result, outputs)
    return exit_status(result.verdict.verdict)


async def measure_cases(
    cases: Sequence[PlannedCase],
    suite: Suite,
    limits: SuiteLimits,
    *,
    before: Sequence[CaseSamples] | None = None,
    keys: Mapping[str, str],
    judge: FrozenJudge | None = None,
) -> EvalResult:
    """Runs planned cases with the real models, and decides.

    Args:
        cases: with their plans.
        suite: whose gate decides.
        limits: samples, samples side by side, budget.
        before: samples of the baseline.
        keys: environment variable of each Secret's API key, by name of the Secret.
        judge: answers the checklist of the suite; None: it has none.
    """
    console, total = new_console(sys.stderr), limits.samples * len(cases)
    done = 0

    def tell(case: str, number: int, sample: SampleResult) -> None:
        nonlocal done
        done += 1
        why = next((check.sentence for check in sample.checks if check.outcome is not check.outcome.PASSED), "")
        text = f"{done}/{total} {case}#{number + 1}: {sample.outcome.value} in {sample.seconds:.1f} s. {clean(why)}"
        console.print(text.rstrip(), markup=False, soft_wrap=True)

    models = ModelRegistry(_secrets(keys))
    try:
        measured = await run_suite(cases, limits, models, tell, judge)
    finally:
        await models.aclose()
    if measured.spent is not None:
        console.print(measured.spent, markup=False, soft_wrap=True)
    counted = [case.counted() for case in measured.cases if case.samples]
    verdict = decide(counted, before, suite.settings.gate, [case.name for case in suite.cases])
    return make_result(suite.digest, measured.cases, verdict, measured.judge)


def write_outputs(result: EvalResult, outputs: Sequence[Output]) -> None:
    """Writes a result in the formats that are asked for; the table goes to standard error if one of them does not."""
    piped = any(output.file is None for output in outputs)
    new_console(sys.stderr if piped else sys.stdout).print(result_table(result))
    write_files(result, outputs)


def write_files(result: EvalResult, outputs: Sequence[Output]) -> None:
    """Writes a result in the formats that are asked for, to files and standard output."""
    for output in outputs:
        match output.format:
            case "json":
                text = write_result(result)
            case "junit":
                text = render_junit(result)
            case _:
                assert_never(output.format)
        if output.file is None:
            sys.stdout.write(text)
        else:
            output.file.write_text(text, encoding="utf-8")


def exit_status(verdict: Verdict) -> int:
    """Returns the exit status of a verdict."""
    match verdict:
        case Verdict.PASSED:
            return 0
        case Verdict.REGRESSED:
            return 1
        case Verdict.INSUFFICIENT:
            return 2
        case _:
            assert_never(verdict)


def key_problems(cases: Sequence[PlannedCase], keys: Mapping[str, str], judge: FrozenJudge | None = None) -> list[str]:
    """Returns a sentence for each Secret whose API key is not given: one key is never sent to two providers.

    Args:
        cases: with their plans.
        keys: environment variable of each Secret's API key, by name of the Secret.
        judge: of the suite; None: it has none.
    """
    asked = [*(one for case in cases for one in providers(case.plan)), *([] if judge is None else [judge.provider])]
    found = {one.api_key for one in asked if one.api_key is not None}
    named = sorted({key.name for key in found} - keys.keys())
    problems = [f"--api-key {name}={keys[name]}: the variable is not set" for name in keys if not _value(keys[name])]
    if len(named) > 1:
        for name in named:
            problems.append(f"Secret {name}: its API key is not known; give --api-key {name}=VARIABLE for each Secret")
    elif named and not _value(KEY_VARIABLE):
        problems.append(f"Secret {named[0]}: there is no cluster to read it from; put its API key into {KEY_VARIABLE}")
    return problems


def _secrets(keys: Mapping[str, str]) -> Callable[[SecretKey], Awaitable[str]]:
    async def read(key: SecretKey) -> str:
        variable = keys.get(key.name, KEY_VARIABLE)
        if not (value := _value(variable)):
            raise SecretProblem("KeyMissing", f"put the API key of Secret {key.name} into {variable}")
        return value

    return read


def _value(variable: str) -> str:
    return os.environ.get(variable, "")


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ResultError(f"{path}: cannot be read: {error.strerror}") from None
