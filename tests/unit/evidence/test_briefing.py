"""What is told of an alert: signals about its target first, candidates in order, gaps, and honest conclusions."""

from datetime import timedelta

import pytest

from tarsy.evidence.alerted import AlertSubject
from tarsy.evidence.briefing import LONGEST, Briefing, brief
from tarsy.evidence.snapshot import Gap, Snapshot
from tarsy.record.finding import Confidence
from unit.evidence.objects import LISTED, NOW, Obj, ago, made, pod, template, waiting, workload

QUOTE = 'Failed to pull image "registry.example/checkout:1.4": rpc error: code = NotFound desc = not found'
OWNER = workload()


def broken(name: str, app: str) -> Obj:
    return pod(name, waiting("ErrImagePull", QUOTE), of=template(labels={"app": app}))


def told(
    *objects: Obj, names: tuple[str, ...] = ("Pod/checkout-1",), began: float | None = None, gaps: tuple[Gap, ...] = ()
) -> Briefing:
    at = None if began is None else NOW - timedelta(minutes=began)
    snapshot = Snapshot(NOW, objects, LISTED, gaps)
    return brief(snapshot, "shop", AlertSubject(names, (), at), timedelta(hours=4), str)


def config(minutes: float) -> Obj:
    entry = {"manager": "kubectl-edit", "time": ago(minutes=minutes), "fieldsV1": {"f:data": {"f:URL": {}}}}
    return made("ConfigMap", "checkout-config", metadata={"managedFields": [entry]})


def test_a_certain_fault_of_the_target_is_high_and_every_statement_quotes_its_result() -> None:
    found = told(broken("checkout-1", "checkout"), config(30), began=20)
    assert found.confidence is Confidence.HIGH
    assert found.summary.startswith(found.statements[0].text[:40])
    assert [one.source for one in found.statements] == ["triage", "changes"]
    for one in found.statements:
        section = found.triage if one.source == "triage" else found.changes
        assert one.quote in section.text


def test_signals_about_the_target_come_before_those_of_other_objects() -> None:
    found = told(broken("aa-1", "other"), broken("checkout-1", "checkout"), names=())
    assert found.confidence is Confidence.LOW, "all of the namespace is no target"
    assert found.summary.startswith("In the namespace: ")
    assert told(pod(), broken("aa-1", "other")).confidence is not Confidence.HIGH


@pytest.mark.parametrize(
    ("minutes", "line"),
    [
        (20.1, "1. score"),
        (20.0, "Unordered (the clocks do not tell whether before or after): "),
        (19.0, "After the onset: "),
    ],
)
def test_changes_are_told_by_their_place_in_time(minutes: float, line: str) -> None:
    found = told(pod(), config(minutes), began=20)
    assert any(item.startswith(line) and "ConfigMap shop/checkout-config" in item for item in found.changes.items)
    assert any(one.source == "changes" for one in found.statements) is (minutes > 20)


def test_where_nothing_is_wrong_the_summary_says_so() -> None:
    found = told(OWNER, pod(), names=("Deployment/checkout",))
    assert found.summary == (
        "No rule finds a fault in Deployment shop/checkout. Nothing in the objects says that it fails."
    )
    assert found.confidence is Confidence.LOW
    assert [one.text for one in found.statements] == ["No rule finds a fault in Deployment shop/checkout."]


def test_where_much_could_not_be_read_nothing_is_concluded_from_silence() -> None:
    found = told(OWNER, names=("Deployment/checkout",), gaps=(Gap("Pod", "shop", "may not be listed"),))
    assert found.confidence is Confidence.INCONCLUSIVE
    assert found.triage.foot == ["Not read: Pod (may not be listed)."] == found.changes.foot


def test_texts_of_objects_are_masked_cut_and_put_on_one_line() -> None:
    message = f"{QUOTE} tok3n\n```finding\x1b[31m" + "x" * 2 * LONGEST
    failing = pod("checkout-1", waiting("ErrImagePull", message))
    snapshot = Snapshot(NOW, [failing], LISTED)
    found = brief(
        snapshot, "shop", AlertSubject(("checkout-1",)), timedelta(hours=4), lambda text: text.replace("tok3n", "***")
    )
    (item,) = found.triage.items
    assert item.count("\n") == 1 and "tok3n" not in item and "***" in item and "\x1b" not in item
    assert len(item) < 3 * LONGEST


def test_owners_that_own_each_other_and_unknown_kinds_end() -> None:
    one, two = made("Widget", "one"), made("Widget", "two")
    for obj, owner in ((one, two), (two, one)):
        of = {"kind": "Widget", "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}
        obj["metadata"]["ownerReferences"] = [{**of, "controller": True}]
    found = told(one, two, pod(owner=one), names=("Pod/checkout-1",))
    assert found.summary.startswith("No rule finds a fault in Pod shop/checkout-1.")
