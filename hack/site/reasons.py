"""Collects the reasons in the code: of conditions, of last errors, of Events.

Decision: they are read out of the syntax of the code, by the places at which reasons stand (arguments of the calls that
carry them, pairs of a reason and its sentence, codes of errors), so that one added tomorrow is missed by the page of
troubleshooting at once, and nobody keeps a list.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, get_args

from hack.components import CHECKOUT

from tarsy.resources.v1alpha1.investigation_status import Phase

_WORD: Final = re.compile(r"^[A-Z][a-z]+([A-Z][a-z]+)*$")
_SEVERAL: Final = re.compile(r"^[A-Z][a-z]+([A-Z][a-z]+)+$")
# What carries a reason, and at which place.
_CALLS: Final = {
    "CalibrationVerdict": 1,
    "Failure": 0,
    "GitProblem": 0,
    "NotYet": 0,
    "Refusal": 0,
    "refusal": 1,
    "Refused": 0,
    "SecretProblem": 0,
    "TokenProblem": 0,
    "Said": 1,
    "failed": 0,
    "made": 2,
    "serve": 2,
    "set_alike": 2,
    "tell": 1,
}
_ENUMS: Final = ("BudgetLimit", "ModelErrorCode")
_KEYWORDS: Final = ("reason", "code")
# Where reasons come from that people see in status and Events. `http` and the local rooms have reasons of HTTP answers.
ROOMS: Final = ("controllers", "engine", "evals", "git", "kube", "llm", "mcp", "plan", "record", "runtime")
# Words at such places that are no reasons of this product: what the Kubernetes API itself says.
OF_OTHERS: Final = frozenset(
    {
        "AlreadyExists",
        "False",
        "True",
        "Unknown",
        "Conflict",
        "EvaluationError",
        "NoConfiguration",
        "NoKubernetesAnswer",
        "NotFound",
        "Normal",
        "Warning",
    }
)


def reasons() -> dict[str, str]:
    """Each reason, with the file that gives it first."""
    found: dict[str, str] = {}
    for room in ROOMS:
        folder = CHECKOUT / "controllers" if room == "controllers" else CHECKOUT / "operator" / "tarsy" / room
        for path in sorted(folder.rglob("*.py")):
            for reason in of(path.read_text(encoding="utf-8")):
                found.setdefault(reason, str(path.relative_to(CHECKOUT)))
    for phase in get_args(Phase):
        found.setdefault(
            phase, "operator/tarsy/record/reading/conditions.py"
        )  # of a run: its phase, where nothing else is to say
    return {reason: found[reason] for reason in sorted(found)}


def of(source: str) -> Iterator[str]:
    """The reasons that a module gives."""
    module = ast.parse(source)
    constants = {
        one.targets[0].id: one.value
        for one in module.body
        if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name)
    }
    for node in ast.walk(module):
        for value in _places(node):
            named = constants.get(value.id) if isinstance(value, ast.Name) else None
            for word in _words(named or value):
                if _WORD.match(word) and word not in OF_OTHERS:
                    yield word


def _places(node: ast.AST) -> Iterator[ast.expr]:
    match node:
        case ast.Call():
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            place = _CALLS.get(name.lstrip("_"))
            if place is not None and len(node.args) > place:
                yield node.args[place]
            yield from (keyword.value for keyword in node.keywords if keyword.arg in _KEYWORDS)
        case ast.Tuple(elts=[ast.Constant(value="Normal" | "Warning"), reason, _]):
            yield reason
        case ast.Tuple(elts=[ast.IfExp(), reason, ast.JoinedStr() | ast.Constant()]):
            yield reason
        case ast.Tuple(elts=[ast.Attribute(value=ast.Name(id="ConditionType")), _, reason, _]):
            yield reason
        case ast.Dict(keys=[ast.Attribute(value=ast.Name(id="ApprovalState")), *_], values=values):
            yield from values
        case ast.Tuple(elts=[first, second]) if _is_word(first) != _is_word(second):
            yield from (first, second)
        case ast.ClassDef() if node.name in _ENUMS:
            yield from (item.value for item in node.body if isinstance(item, ast.Assign))
        case ast.Module():
            yield from (one.value for one in node.body if isinstance(one, ast.Assign) and _names_reason(one))
        case ast.Assign(targets=[ast.Name(id=name)]) if name in _KEYWORDS:
            yield node.value
        case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
            yield from (value for name, value in zip(names, values, strict=True) if getattr(name, "id", "") == "reason")
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value) if name in _KEYWORDS:
            yield value
        case _:
            return


def _names_reason(assignment: ast.Assign) -> bool:
    """Whether it is a constant of a module that holds a word of several parts, such as PACKAGE_MISSING."""
    (target, *_), value = assignment.targets, assignment.value
    named = isinstance(target, ast.Name) and target.id.isupper() and isinstance(value, ast.Constant)
    return named and bool(_SEVERAL.match(str(getattr(value, "value", ""))))


def _is_word(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and isinstance(value.value, str) and bool(_WORD.match(value.value))


def _words(value: ast.expr) -> Iterator[str]:
    match value:
        case ast.Constant(value=str(word)):
            yield word
        case ast.IfExp():
            yield from _words(value.body)
            yield from _words(value.orelse)
        case ast.BoolOp():
            for one in value.values:
                yield from _words(one)
        case _:
            return


def entries(page: str) -> list[str]:
    """The reasons that a page of troubleshooting has an entry for: its headings of the third level, in their order."""
    return re.findall(r"^### `(\w+)`", page, re.MULTILINE)


def read(path: Path) -> list[str]:
    """The entries of the page at `path`."""
    return entries(path.read_text(encoding="utf-8"))
