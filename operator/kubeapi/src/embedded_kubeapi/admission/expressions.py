"""Compiles the expressions of policies and webhooks when they are written, and reports errors by field.

Which variables each may use: kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy ("Variable
composition") and extensible-admission-controllers ("Matching requests: matchConditions").
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from embedded_kubeapi.cel import CelSyntaxError, compile_program
from embedded_kubeapi.errors import FieldError, duplicate, required, wrong
from embedded_kubeapi.objects import Key, Obj

GROUP = "admissionregistration.k8s.io"
POLICIES: Key = (GROUP, "validatingadmissionpolicies")
BINDINGS: Key = (GROUP, "validatingadmissionpolicybindings")
MUTATING: Key = (GROUP, "mutatingwebhookconfigurations")
VALIDATING: Key = (GROUP, "validatingwebhookconfigurations")
_WEBHOOK = frozenset(("object", "oldObject", "request", "authorizer"))
_POLICY = _WEBHOOK | {"namespaceObject"}


def check_expressions(key: Key, obj: Obj) -> Iterator[FieldError]:
    """Returns the errors in the expressions of an object, if its kind has expressions."""
    if key in (MUTATING, VALIDATING):
        for at, webhook in enumerate(obj.get("webhooks") or ()):
            yield from _conditions(webhook.get("matchConditions"), f"webhooks[{at}].matchConditions", _WEBHOOK)
    elif key == POLICIES:
        yield from _policy(obj.get("spec") or {})
    elif key == BINDINGS and not (obj.get("spec") or {}).get("policyName"):
        yield required("spec.policyName")


def _policy(spec: Obj) -> Iterator[FieldError]:
    names = _POLICY | ({"params"} if spec.get("paramKind") else set())
    yield from _conditions(spec.get("matchConditions"), "spec.matchConditions", names)
    known: list[str] = []
    for at, variable in enumerate(spec.get("variables") or ()):
        path = f"spec.variables[{at}]"
        if variable.get("name") in known:
            yield duplicate(f"{path}.name", variable["name"])
        yield from _expression(variable.get("expression"), f"{path}.expression", {*names, "variables"}, known)
        known.append(str(variable.get("name")))
    names |= {"variables"}
    if not spec.get("validations") and not spec.get("auditAnnotations"):
        yield required("spec.validations", "validations or auditAnnotations must contain at least one item")
    for at, validation in enumerate(spec.get("validations") or ()):
        path = f"spec.validations[{at}]"
        yield from _expression(validation.get("expression"), f"{path}.expression", names, known)
        if validation.get("messageExpression"):
            yield from _expression(validation["messageExpression"], f"{path}.messageExpression", names, known)
    for at, annotation in enumerate(spec.get("auditAnnotations") or ()):
        path = f"spec.auditAnnotations[{at}].valueExpression"
        yield from _expression(annotation.get("valueExpression"), path, names, known)


def _conditions(conditions: Any, path: str, names: Iterable[str]) -> Iterator[FieldError]:
    for at, condition in enumerate(conditions or ()):
        yield from _expression(condition.get("expression"), f"{path}[{at}].expression", names, ())


def _expression(text: Any, path: str, names: Iterable[str], known: Iterable[str]) -> Iterator[FieldError]:
    if not text:
        yield required(path)
        return
    try:
        program = compile_program(text, names)
    except CelSyntaxError as error:
        yield wrong(path, text, f"compilation failed: {error}")
        return
    for field in sorted(program.fields_of("variables") - set(known)):
        yield wrong(path, text, f"compilation failed: ERROR: <input>:1:1: undefined field '{field}'")
