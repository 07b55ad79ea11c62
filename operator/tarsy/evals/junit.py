"""Renders a result as JUnit XML, which CI systems show as tests.

A case is a test: failed if it failed, skipped if it is inconclusive, because it says nothing. A last test, `verdict`,
tells whether the suite passed: a case that fails is no regression by itself, and a suite without failures may still be
too small.
"""

import re
from xml.etree import ElementTree

from tarsy.evals.expectations import Outcome
from tarsy.evals.result import CaseResult, EvalResult
from tarsy.evals.verdict import Verdict

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot contain."""


def render_junit(result: EvalResult) -> str:
    """Returns the XML document of a result."""
    cases = [_case(case) for case in result.cases]
    cases.append(_verdict(result))
    failures = sum(case.find("failure") is not None for case in cases)
    errors = sum(case.find("error") is not None for case in cases)
    skipped = sum(case.find("skipped") is not None for case in cases)
    seconds = sum(float(case.get("time", "0")) for case in cases)
    suite = ElementTree.Element(
        "testsuite",
        name="tarsy eval",
        tests=str(len(cases)),
        failures=str(failures),
        errors=str(errors),
        skipped=str(skipped),
        time=f"{seconds:.3f}",
    )
    suite.extend(cases)
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _case(case: CaseResult) -> ElementTree.Element:
    seconds = sum(sample.seconds for sample in case.samples)
    made = _test(case.name, case.chain, seconds)
    counted = case.counted()
    told = f"{counted.passed} of {counted.asked} samples passed, {counted.inconclusive} inconclusive"
    if counted.outcome is not Outcome.PASSED:
        kind = "failure" if counted.outcome is Outcome.FAILED else "skipped"
        _told(made, kind, told, _reasons(case))
    return made


def _reasons(case: CaseResult) -> str:
    lines = []
    for number, sample in enumerate(case.samples, 1):
        wrong = [check.sentence for check in sample.checks if check.outcome is not Outcome.PASSED]
        lines += [f"sample {number}: {sentence}" for sentence in wrong]
    return "\n".join(lines) or "No sample was run."


def _verdict(result: EvalResult) -> ElementTree.Element:
    made, verdict = _test("verdict", "suite", 0.0), result.verdict
    if verdict.verdict is not Verdict.PASSED:
        kind = "failure" if verdict.verdict is Verdict.REGRESSED else "error"
        _told(made, kind, verdict.verdict.value, "\n".join([*verdict.reasons, verdict.power]))
    return made


def _test(name: str, of: str, seconds: float) -> ElementTree.Element:
    return ElementTree.Element("testcase", name=_clean(name), classname=_clean(of), time=f"{seconds:.3f}")


def _told(test: ElementTree.Element, kind: str, message: str, text: str) -> None:
    part = ElementTree.SubElement(test, kind, message=_clean(message))
    if kind != "skipped":
        part.set("type", kind)
    part.text = _clean(text)


def _clean(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)
