"""`escalate` of a stage: the second attempt in the frozen plan, and the expression that asks for it."""

from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from tarsy.cli.plans.tree import tree
from tarsy.plan.catalog import ResourceCatalog
from tarsy.plan.check import references
from tarsy.plan.errors import PlanInvalid
from tarsy.plan.escalation import asks_for_escalation, escalation_errors
from tarsy.plan.model import EscalationPlan, Plan
from tarsy.plan.reach import read_plan
from tarsy.plan.resolve import PlanRequest, explain_plan
from tarsy.plan.what_if import with_provider
from tarsy.record.finding import Citation, Claim, Confidence, Finding
from tarsy.record.run import State
from unit.plan.builders import LIBRARY, TEAM, agent, alert, chain, google, plan_of, provider, selected, server, stage

WHEN = "confidence == 'Low' || claims.exists(c, !c.supported)"


def wish(when: str = WHEN, to: str = "large") -> dict[str, Any]:
    return {"when": when, "to": to}


def resolved(*agents: Any, of: Any = None, **more: Any) -> Plan:
    made = chain(stages=[stage(*agents, escalate=of or wish(), **more)])
    large = provider("large", model="l", rates={"inputPerMillion": "10", "outputPerMillion": "20"})
    return plan_of([made, agent(mcpServers=selected("kube")), agent("second"), provider(), large, server()])


def second(plan: Plan) -> EscalationPlan:
    found = plan.stages[0].escalation
    assert found is not None
    return found


def test_the_second_attempt_has_the_same_agents_with_the_other_provider() -> None:
    plan = resolved()

    (first,), (again,) = plan.stages[0].agents, second(plan).agents
    assert (first.provider.model, again.provider.model) == ("m", "l")
    assert again.model_copy(update={"provider": first.provider}) == first
    assert second(plan).when == WHEN
    assert (second(plan).synthesis, plan.stages[0].places) == (None, 2)


def test_the_synthesis_of_the_second_attempt_uses_the_other_provider_too() -> None:
    plan = resolved("triage", "second", synthesis={"llmProvider": "model"})

    joins = second(plan).synthesis
    assert joins is not None and joins.provider.model == "l"
    assert [one.provider.model for one in second(plan).agents] == ["l", "l"]
    assert [one.name for one in plan.stages[0].attempts] == ["look", "look-escalated"]
    assert plan.stages[0].places == 4


def test_replicas_of_the_second_attempt_are_those_of_the_first() -> None:
    plan = resolved(replicas=2)

    assert [one.name for one in second(plan).agents] == ["triage-1", "triage-2"]


def test_what_the_second_attempt_needs_is_part_of_the_plan() -> None:
    plan = resolved("triage", "second")

    assert ("LLMProvider", "large") in {(one.kind, one.name) for one in plan.objects}
    assert "l" in {one.model for one in plan.providers}
    assert len(plan.agents) == 2 + 2 + 2 + 1  # of each attempt, their syntheses, the executive summary
    assert ("LLMProvider", TEAM, "large") in references(chain(stages=[stage(escalate=wish())]))


def test_a_plan_without_escalation_is_stored_as_before() -> None:
    plan = plan_of([chain(), agent(), provider()])

    assert b"escalation" not in plan.dump()
    assert read_plan(plan.dump()) == plan
    assert plan.stages[0].places == 1


def test_a_plan_with_one_is_read_as_it_was_written() -> None:
    plan = resolved("triage", "second")

    assert read_plan(plan.dump()) == plan


def test_a_replay_with_another_provider_has_no_second_attempt() -> None:
    changed = with_provider(chain(stages=[stage(escalate=wish())]), "model")

    assert changed.spec.stages[0].escalate is None


def test_a_provider_that_does_not_exist_is_an_error_of_its_field() -> None:
    with pytest.raises(PlanInvalid, match=r"stages\[0\]\.escalate\.to: there is no LLMProvider gone"):
        plan_of([chain(stages=[stage(escalate=wish(to="gone"))]), agent(), provider()])


def test_a_provider_that_cannot_do_the_agents_strategy_is_an_error() -> None:
    native = {"name": "triage", "strategy": "native-thinking", "llmProvider": "gemini"}

    with pytest.raises(
        PlanInvalid, match=r"agents\[0\]\.strategy: strategy native-thinking needs .* LLMProvider team-a/x"
    ):
        plan_of([chain(stages=[stage(native, escalate=wish(to="x"))]), agent(), google(), provider("x", type="xai")])


def test_the_tree_shows_when_and_with_what() -> None:
    made = chain(stages=[stage(escalate=wish())])
    catalog = ResourceCatalog([made, agent(), provider(), provider("large", model="l")], None)
    found = explain_plan(
        PlanRequest(namespace=TEAM, alert=alert(), chain=made, catalog=catalog, library_namespace=LIBRARY)
    )
    out = StringIO()

    Console(file=out, width=200).print(tree(found))

    assert "escalation" in out.getvalue()
    assert f"{WHEN}  Chain team-a/pods spec.stages[0].escalate.when" in out.getvalue()
    provided = next(line for line in out.getvalue().splitlines() if "team-a/large" in line)
    assert provided.rstrip().endswith("Chain team-a/pods spec.stages[0].escalate.to")


# The expression.


def finding(confidence: Confidence = Confidence.LOW, *claims: Claim, structured: bool = True) -> Finding:
    return Finding(summary="full", confidence=confidence, claims=claims, structured=structured)


HELD = Claim(
    text="full", supported=True, citations=(Citation(call_id="c", quote="100% used", supported=True, replaced=True),)
)
BARE = Claim(text="full", citations=(Citation(call_id="c", quote="x"),))


@pytest.mark.parametrize(
    ("when", "of", "holds"),
    [
        ('confidence == "Low"', finding(), True),
        ('confidence in ["Low", "Inconclusive"]', finding(Confidence.MEDIUM), False),
        ("claims.filter(c, c.supported).size() < 2", finding(Confidence.HIGH, HELD, BARE), True),
        ("claims.exists(c, c.contradicted)", finding(Confidence.HIGH, HELD), True),
        ("claims.all(c, c.grounded)", finding(Confidence.HIGH, HELD, BARE), False),
        ("claims[0].citations == 1 && claims[0].integrity == ''", finding(Confidence.HIGH, BARE), True),
        ("'UnsupportedClaims' in flaws", finding(Confidence.HIGH, HELD, BARE), True),
        ("flaws == ['ContradictedClaims']", finding(Confidence.HIGH, HELD), True),
        ("'Unstructured' in flaws", finding(structured=False), True),
        ("size(flaws) > 0", finding(), False),
        ("outcome == 'Completed'", finding(), True),
    ],
)
def test_an_expression_reads_the_finding(when: str, of: Finding, holds: bool) -> None:
    assert asks_for_escalation(when, State.COMPLETED, of) is holds
    assert errors(when) == []


@pytest.mark.parametrize(("state", "word"), [(State.FAILED, "Failed"), (State.TIMED_OUT, "TimedOut")])
def test_a_stage_that_did_not_complete_has_no_finding(state: State, word: str) -> None:
    when = f"outcome == '{word}' && confidence == 'Inconclusive' && claims == [] && flaws == []"

    assert asks_for_escalation(when, state, None)


def errors(when: str) -> list[str]:
    return [str(one) for one in escalation_errors(chain(stages=[stage(), stage(name="b", escalate=wish(when))]))]


@pytest.mark.parametrize(
    ("when", "why"),
    [
        ("confidence ==", "ERROR"),
        ("severity == 'high'", "undeclared reference to 'severity'"),
        ("confidence < 2", "no such overload"),
        ("claims.exists(c, c.helds)", "no such key: helds"),
        ("claims", "its value is a list; compare it"),
        ("size(claims)", "its value is a number; compare it"),
        ("confidence", "its value is a text; compare it"),
        ("confidence == 'Low' && claims > 3", "no such overload"),
        ("claims[9].supported", "index out of bounds: 9"),
    ],
)
def test_a_wrong_expression_is_an_error_of_its_field(when: str, why: str) -> None:
    (error,) = errors(when)

    assert error.startswith(
        "Chain team-a/pods: spec.stages[1].escalate.when: is not a CEL expression over confidence, claims, outcome, "
        "flaws "
        "that is true or false: "
    )
    assert why in error


def test_an_expression_that_depends_on_the_finding_is_none() -> None:
    assert errors("claims[0].supported") == []


def test_an_expression_that_costs_too_much_has_no_value() -> None:
    many = tuple(HELD for _ in range(32))
    when = "claims.all(a, claims.all(b, claims.all(c, claims.all(d, a.text + b.text + c.text + d.text != ''))))"

    with pytest.raises(Exception, match=r"cost limit|time limit"):
        asks_for_escalation(when, State.COMPLETED, finding(Confidence.HIGH, *many))
