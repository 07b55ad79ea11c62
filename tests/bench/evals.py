"""How long the judgement of many samples takes, and how much memory."""

import asyncio
import time
import tracemalloc

from tests.bench.figures import Figure, Result

from tarsy.evals.expectations import FinishedRun, MadeCall, Outcome, judge
from tarsy.evals.verdict import CaseSamples, decide
from tarsy.record.finding import Citation, Claim, Confidence, Finding
from tarsy.resources.v1alpha1.expectation import Expectation, Gate

SAMPLES = 10_000
_CASES = 200
_EXPECT = Expectation.model_validate(
    {
        "rootCause": {"entities": ["Deployment/checkout"]},
        "distractors": ["redis-0", "Pod/cart-*"],
        "facts": [{"expression": "claims.exists(c, c.text.contains('64Mi')) && calls.all(c, !c.failed)"}],
        "tools": {"required": ["kubernetes.get_events"]},
        "citations": {"precisionMin": 0.5},
    }
)


def _run() -> FinishedRun:
    citation = Citation(call_id="call_0123456789ab", quote="OOMKilled", supported=True, tool="kubernetes.get_events")
    texts = [f"Statement {n} about shop/checkout-{n}: it was read from the events of the last hour." for n in range(31)]
    texts.append("Deployment/checkout was killed: its limit is 64Mi.")
    claims = tuple(Claim(text=text, citations=(citation,), supported=True) for text in texts)
    calls = tuple(MadeCall("kubernetes.get_events") for _ in range(30))
    return FinishedRun(
        Finding(summary="It is out of memory.", confidence=Confidence.HIGH, claims=claims), calls, steps=20
    )


def measure(quick: bool) -> Result:
    """Judges samples of 200 cases and decides the verdict."""
    count = SAMPLES // 10 if quick else SAMPLES
    run = _run()
    began = time.process_time()
    passed = sum(judge(run, _EXPECT).outcome is Outcome.PASSED for _ in range(count))
    judged = time.process_time() - began
    each = count // _CASES
    cases = [CaseSamples(f"case-{n}", "d", passed=each, asked=each) for n in range(_CASES)]
    tracemalloc.start()
    began = time.process_time()
    decide(cases, cases, Gate(), {case.name for case in cases})
    decided = time.process_time() - began
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    figures = [
        Figure(f"judging {count:,} samples of 32 claims", judged, "s"),
        Figure("a sample", judged / count * 1000, "ms"),
        Figure(f"the verdict on {_CASES} paired cases", decided, "s"),
        Figure("memory of the verdict", peak / 1_000_000, "MB"),
    ]
    assert passed == count
    return Result(f"{count:,} samples, one core", figures)


async def run(quick: bool) -> Result:
    """Measures in a thread of its own."""
    return await asyncio.to_thread(measure, quick)
