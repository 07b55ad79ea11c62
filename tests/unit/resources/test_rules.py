"""Every CEL rule of every kind: parsed, and evaluated on an object that keeps it and one that breaks it.

Decision: the objects are in `rule_cases`; a rule without both fails here, and so does a case without its rule.
"""

from functools import cache
from typing import Any

import celpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from for_each import for_each
from properties import examples
from tarsy.resources.crd import crd
from tarsy.resources.schema import BrokenRules, Model, ValidationRule
from tarsy.resources.v1alpha1 import KINDS, Alert, ChatMessage, EvalRun, Investigation
from tarsy.resources.v1alpha1.alert import AlertContent
from unit.resources.crd_walk import walk
from unit.resources.rule_cases import CASES


@cache
def environment() -> celpy.Environment:
    """Of the other implementation of CEL; its grammar takes a second."""
    return celpy.Environment()


def models(model: type[Model]) -> dict[type[Model], None]:
    """The model and all those in its fields, in order."""
    found: dict[type[Model], None] = {model: None}
    pending = [field.annotation for field in model.model_fields.values()]
    while pending:
        annotation = pending.pop()
        if isinstance(annotation, type) and issubclass(annotation, Model):
            found |= models(annotation)
        pending.extend(getattr(annotation, "__args__", ()))
    return found


def rules() -> list[tuple[type[Model], ValidationRule]]:
    """All rules of all kinds, with the model that each is on."""
    everything = {model: None for kind in KINDS.values() for model in models(kind)}
    return [(model, rule) for model in everything for rule in model.RULES]


@cache
def compiled(cel: str) -> celpy.Runner:
    """The program of a rule: each is evaluated many times."""
    return environment().program(environment().compile(cel))


def holds(rule: ValidationRule, new: dict[str, Any], old: dict[str, Any] | None = None) -> bool:
    """What CEL says of the rule, for an object as the API server has it: with its defaults."""
    program = compiled(rule.cel)
    activation = {"self": celpy.json_to_cel(new)}
    if old is not None:
        activation["oldSelf"] = celpy.json_to_cel(old)
    return bool(program.evaluate(activation))


def broken(model: type[Model], value: dict[str, Any]) -> tuple[ValidationRule, ...]:
    """The rules that Python says the value breaks."""
    try:
        model.model_validate(value, by_name=False)
    except ValidationError as error:
        return tuple(
            rule
            for detail in error.errors()
            if isinstance(cause := detail.get("ctx", {}).get("error"), BrokenRules)
            for rule in cause.rules
        )
    return ()


each_case = for_each("case", CASES, ids=lambda case: f"{case.model.__name__}-{case.rule.field or 'union'}-{case.id}")


def test_every_rule_has_a_case_that_keeps_it_and_one_that_breaks_it():
    covered = {(case.model, case.rule.cel) for case in CASES}
    assert covered == {(model, rule.cel) for model, rule in rules()}


def test_every_rule_is_in_a_crd():
    published = {
        entry["rule"]
        for kind in KINDS.values()
        for node in walk(crd(kind))
        for entry in node.schema.get("x-kubernetes-validations", ())
    }
    assert published == {rule.cel for _, rule in rules()}


def test_every_rule_that_needs_no_old_object_is_checked_in_python_too():
    assert [rule.cel for _, rule in rules() if (rule.holds is None) != ("oldSelf" in rule.cel)] == []


@each_case
def test_cel_rule_accepts_the_good_object_and_refuses_the_bad_one(case):
    rule = case.rule
    assert holds(rule, case.good, case.old)
    assert not holds(rule, case.bad, case.old)


@each_case
def test_python_agrees_with_cel(case):
    rule = case.rule
    if rule.holds is not None:
        assert broken(case.model, case.good) == ()
        assert broken(case.model, case.bad) == (rule,)


@pytest.mark.parametrize(
    ("kind", "mutable"),
    [
        (Alert, {"ttlSecondsAfterFinished"}),
        (Investigation, {"desiredState", "ttlSecondsAfterFinished"}),
        (ChatMessage, {"desiredState"}),
        (EvalRun, {"desiredState", "ttlSecondsAfterFinished"}),
    ],
    ids=lambda value: getattr(value, "KIND", ""),
)
def test_all_other_fields_of_a_run_are_immutable(kind, mutable):
    spec = kind.model_fields["spec"].annotation
    fixed = {rule.field for rule in spec.RULES if "cannot be changed" in rule.message}
    assert fixed == {field.alias for field in spec.model_fields.values()} - mutable


@examples(60)
@given(st.text("x é\t\n😀\u2003\x0b", max_size=12))
def test_python_and_cel_agree_on_what_empty_data_is(data):
    for rule in AlertContent.RULES:
        if rule.field == "data":
            content = AlertContent.model_construct(alert_type="a", data=data)
            assert rule.holds(content) == holds(rule, {"alertType": "a", "data": data})
