"""Compiles and evaluates the CEL expressions of `MCPServer.spec.approval` and `Chain.spec.preApproved`."""

from collections.abc import Mapping
from typing import Any

from tarsy.cel import CEL_ERRORS, CelSyntaxError, compile_program
from tarsy.cel.budget import PER_EXPRESSION, CostBudget
from tarsy.plan.errors import FieldPath, PlanError
from tarsy.resources.v1alpha1.chain import Chain
from tarsy.resources.v1alpha1.mcp_server import MCPServer

ARGUMENTS = "arguments"
"""Variable with the arguments of a call."""

BEFORE, MANIFEST = "before", "manifest"
"""Variables of an undo: the object before the call, and the same as a manifest in JSON."""

_SECONDS = 0.2


class NotEvaluated(Exception):
    """An expression has no value for a call; the text has the reason."""


def evaluate(text: str, variables: Mapping[str, Any]) -> Any:
    """Returns the value of an expression.

    Args:
        text: CEL.
        variables: by name; an expression that names another one is not evaluated.

    Raises:
        NotEvaluated: it has no value.
    """
    try:
        return compile_program(text, variables).evaluate(variables, CostBudget(PER_EXPRESSION, seconds=_SECONDS))
    except CEL_ERRORS as error:
        raise NotEvaluated(str(error)) from error


def expression_errors(server: MCPServer) -> list[PlanError]:
    """Returns what is wrong with the expressions of a server, by field."""
    declared = server.spec.approval
    if declared is None:
        return []
    at = FieldPath.of(server) / "approval"
    found: list[tuple[FieldPath, str | None, tuple[str, ...]]] = []
    for number, target in enumerate(declared.targets):
        place = (at / "targets")[number]
        found += [(place / "object", target.object, (ARGUMENTS,)), (place / "change", target.change, (ARGUMENTS,))]
    of_undo = (ARGUMENTS, BEFORE, MANIFEST)
    for number, undo in enumerate(declared.undo):
        found.append(((at / "undo")[number] / "arguments", undo.arguments, of_undo))
    return [
        field.error(f"is not a CEL expression over {' and '.join(names)}: {problem}")
        for field, text, names in found
        if text is not None and (problem := _problem(text, names)) is not None
    ]


def when_errors(chain: Chain) -> list[PlanError]:
    """Returns what is wrong with the expressions of `spec.preApproved`, by field."""
    at = FieldPath.of(chain) / "preApproved"
    return [
        (at[number] / "when").error(f"is not a CEL expression over {ARGUMENTS}: {problem}")
        for number, entry in enumerate(chain.spec.pre_approved)
        if (problem := _problem(entry.when, (ARGUMENTS,))) is not None
    ]


def _problem(text: str, names: tuple[str, ...]) -> str | None:
    try:
        compile_program(text, names)
    except CelSyntaxError as error:
        return str(error)
    return None
