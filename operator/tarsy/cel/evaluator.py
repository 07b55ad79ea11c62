"""Compiles a syntax tree to closures; a closure takes the variables and returns the value or raises `CelError`.

Values are JSON's own (dict, list, str, int, float, bool, None) with bytes, datetime and timedelta, so objects need no
conversion. What is particular to the language is here: errors that `||`, `&&`, `all` and `exists` absorb, `has`, the
macros, optional values, and equality in which true is not 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from . import library, operators
from .budget import IN_SCOPE, PER_EXPRESSION, CostBudget, charged
from .errors import CelError, CelSyntaxError
from .operators import Optional, boolean
from .parser import Call, Ident, Index, ListOf, Literal, MapOf, Node, Select, parse

Variables = Mapping[str, Any]
Closure = Callable[[Variables], Any]
_ESCAPES = (
    ("__underscores__", "__"),
    ("__dot__", "."),
    ("__dash__", "-"),
    ("__slash__", "/"),
)
COMPREHENSIONS = {"all", "exists", "exists_one", "existsOne", "map", "filter", "transformList", "transformMap"}
_LARGE = (str, bytes, list, dict)
_NAMESPACES = {"math", "sets", "optional", "lists", "base64", "ip", "cidr", "strings", "quantity"}


@dataclass(frozen=True)
class Program:
    """A compiled expression. `names` are the variables that it uses and, as NAME.FIELD, their fields."""

    text: str
    names: frozenset[str]
    closure: Closure

    def fields_of(self, variable: str) -> set[str]:
        """Returns the fields of a variable that the expression uses."""
        return {name.partition(".")[2] for name in self.names if name.startswith(variable + ".")}

    def evaluate(self, scope: Variables, budget: CostBudget | None = None) -> Any:
        """Evaluates the expression.

        Raises:
            CelError: it has none for these variables.
            CelCostError: it costs more than the budget (by default what one expression may cost).
        """
        try:
            return self.closure({**scope, IN_SCOPE: budget or CostBudget(PER_EXPRESSION)})
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise CelError(f"no such overload: {error}") from error


def compile_program(text: str, variables: Iterable[str]) -> Program:
    """Compiles an expression that may use these variables; caches the result.

    Raises:
        CelSyntaxError: the text is no expression, or names an unknown variable or function.
    """
    return _compiled(text, frozenset(variables))


@lru_cache(maxsize=4096)
def _compiled(text: str, variables: frozenset[str]) -> Program:
    compiler = _Compiler(variables)
    try:
        closure = compiler.compile(parse(text), frozenset())
    except RecursionError:
        raise CelSyntaxError("ERROR: <input>:-1:0: expression recursion limit exceeded") from None
    return Program(text, frozenset(compiler.used), closure)


class _Compiler:
    def __init__(self, variables: frozenset[str]) -> None:
        self._variables = variables
        self.used: set[str] = set()

    def compile(self, node: Node, local: frozenset[str]) -> Closure:
        match node:
            case Literal(value):
                return lambda scope: value
            case Ident(name):
                return self._identifier(name, local)
            case Select(operand=operand, field=field, optional=optional):
                if isinstance(operand, Ident) and operand.name not in local:
                    self.used.add(f"{operand.name}.{field}")
                return _select(self.compile(operand, local), unescaped(field), optional)
            case Index(operand, index, optional):
                return _index(self.compile(operand, local), self.compile(index, local), optional)
            case ListOf(items):
                parts = [self.compile(item, local) for item in items]
                return lambda scope: [part(scope) for part in parts]
            case MapOf(entries):
                pairs = [(self.compile(key, local), self.compile(value, local)) for key, value in entries]
                return lambda scope: {key(scope): value(scope) for key, value in pairs}
            case Call():
                return self._call(node, local)

    def _identifier(self, name: str, local: frozenset[str]) -> Closure:
        if name in local or name in self._variables:
            self.used.add(name)
            return lambda scope: scope[name]
        if name in operators.TYPES:
            value = operators.TYPES[name]
            return lambda scope: value
        raise CelSyntaxError(f"ERROR: <input>:1:1: undeclared reference to '{name}' (in container '')")

    def _call(self, node: Call, local: frozenset[str]) -> Closure:
        name, arguments = node.function, node.arguments
        if node.target is None:
            if name in _OPERATORS and len(arguments) == _OPERATORS[name][0]:
                return _OPERATORS[name][1](*(self.compile(argument, local) for argument in arguments))
            if name == "has" and len(arguments) == 1:
                return self._has(arguments[0], local)
        elif name in COMPREHENSIONS and len(arguments) in (2, 3, 4) and isinstance(arguments[0], Ident):
            return self._comprehension(node.target, name, arguments, local)
        elif isinstance(node.target, Ident) and node.target.name in _NAMESPACES - self._variables - local:
            name, node = f"{node.target.name}.{name}", Call(name, None, arguments)
        elif name in ("or", "orValue") and node.target is not None:
            return _fallback(self.compile(node.target, local), self.compile(arguments[0], local), name == "orValue")
        operands = [] if node.target is None else [node.target]
        parts = [self.compile(operand, local) for operand in (*operands, *arguments)]
        table = library.FUNCTIONS if node.target is None else library.METHODS
        function = table.get(name)
        if function is None:
            raise CelSyntaxError(f"ERROR: <input>:1:1: undeclared reference to '{name}' (in container '')")
        call = charged(name, function)
        return lambda scope: call(scope[IN_SCOPE], [part(scope) for part in parts])

    def _has(self, argument: Node, local: frozenset[str]) -> Closure:
        if not isinstance(argument, Select):
            raise CelSyntaxError("ERROR: <input>:1:1: invalid argument to has() macro")
        operand, field = self.compile(argument.operand, local), unescaped(argument.field)

        def has(scope: Variables) -> bool:
            value = operand(scope)
            if isinstance(value, Optional):
                value = value.content if value.present else {}
            if isinstance(value, dict):
                return field in value
            return bool(operators.attribute(value, field, missing=False))

        return has

    def _comprehension(self, target: Node, name: str, arguments: tuple[Node, ...], local: frozenset[str]) -> Closure:
        variables = [argument.name for argument in arguments if isinstance(argument, Ident)]
        two = len(arguments) > 2 and isinstance(arguments[1], Ident) and name != "map"
        bound = variables[: 2 if two else 1]
        inner = local | set(bound)
        items = self.compile(target, local)
        bodies = [self.compile(argument, inner) for argument in arguments[len(bound) :]]

        def scopes(scope: Variables) -> Iterable[tuple[Variables, Any]]:
            value = items(scope)
            if isinstance(value, dict):
                pairs: Iterable[tuple[Any, Any]] = value.items()
            elif isinstance(value, list):
                pairs = enumerate(value) if two else ((item, item) for item in value)
            else:
                raise CelError(f"no such overload: {operators.kind(value)}.{name}")
            budget: CostBudget = scope[IN_SCOPE]
            for first, second in pairs:
                budget.spend(1)
                mapped = {bound[0]: first, bound[1]: second} if two else {bound[0]: first}
                yield {**scope, **mapped}, first

        return _comprehension(name, scopes, bodies)


def _comprehension(
    name: str, scopes: Callable[[Variables], Iterable[tuple[Variables, Any]]], bodies: list[Closure]
) -> Closure:
    body, last = bodies[0], bodies[-1]

    def every(scope: Variables) -> bool:
        return _absorb((inner for inner, _ in scopes(scope)), body, stop=False)

    def some(scope: Variables) -> bool:
        return _absorb((inner for inner, _ in scopes(scope)), body, stop=True)

    def kept(scope: Variables) -> Iterable[tuple[Variables, Any]]:
        return ((inner, item) for inner, item in scopes(scope) if len(bodies) == 1 or boolean(body(inner)))

    match name:
        case "all":
            return every
        case "exists":
            return some
        case "exists_one" | "existsOne":
            return lambda scope: sum(boolean(body(inner)) for inner, _ in scopes(scope)) == 1
        case "filter":
            return lambda scope: [item for inner, item in scopes(scope) if boolean(body(inner))]
        case "transformMap":
            return lambda scope: {item: last(inner) for inner, item in kept(scope)}
        case _:
            return lambda scope: [last(inner) for inner, _ in kept(scope)]


def _absorb(scopes: Iterable[Variables], body: Closure, stop: bool) -> bool:
    error: Exception | None = None
    for scope in scopes:
        try:
            if boolean(body(scope)) is stop:
                return stop
        except (CelError, TypeError, ValueError) as caught:
            error = caught
    if error is not None:
        raise error
    return not stop


def _logic(stop: bool) -> Callable[[Closure, Closure], Closure]:
    def combine(left: Closure, right: Closure) -> Closure:
        def closure(scope: Variables) -> bool:
            try:
                if boolean(left(scope)) is stop:
                    return stop
            except (CelError, TypeError, ValueError):
                if boolean(right(scope)) is stop:  # the other side decides alone
                    return stop
                raise
            return boolean(right(scope))

        return closure

    return combine


def _ternary(condition: Closure, yes: Closure, no: Closure) -> Closure:
    return lambda scope: yes(scope) if boolean(condition(scope)) else no(scope)


def _select(operand: Closure, field: str, optional: bool) -> Closure:
    def select(scope: Variables) -> Any:
        value = operand(scope)
        if isinstance(value, dict) and not optional:
            if field in value:
                return value[field]
            raise CelError(f"no such key: {field}")
        if isinstance(value, Optional) or optional:
            return Optional.select(value, field)
        return operators.attribute(value, field)

    return select


def _index(operand: Closure, index: Closure, optional: bool) -> Closure:
    def at(scope: Variables) -> Any:
        value, key = operand(scope), index(scope)
        if isinstance(value, Optional) or optional:
            return Optional.select(value, key)
        return operators.index(value, key)

    return at


def _fallback(operand: Closure, other: Closure, unwrap: bool) -> Closure:
    def closure(scope: Variables) -> Any:
        value = operand(scope)
        if not isinstance(value, Optional):
            raise CelError(f"no such overload: {operators.kind(value)}.orValue")
        if value.present:
            return value.content if unwrap else value
        return other(scope)

    return closure


def _function(function: Callable[..., Any]) -> Callable[..., Closure]:
    def build(*parts: Closure) -> Closure:
        if len(parts) == 1:
            only = parts[0]
            return lambda scope: function(only(scope))
        left, right = parts
        return lambda scope: function(left(scope), right(scope))

    return build


def _paid(function: Callable[[Any, Any], Any]) -> Callable[[Closure, Closure], Closure]:
    """An operator whose cost grows with its operands."""

    def build(left: Closure, right: Closure) -> Closure:
        def closure(scope: Variables) -> Any:
            a, b = left(scope), right(scope)
            if isinstance(a, _LARGE) and isinstance(b, _LARGE):
                scope[IN_SCOPE].spend_on(a, b)
            elif isinstance(b, list):
                scope[IN_SCOPE].spend_on(b)
            return function(a, b)

        return closure

    return build


def unescaped(field: str) -> str:
    """Returns the property's name in the schema for its escaped name in an expression, such as __namespace__."""
    if "__" not in field:
        return field
    if field.startswith("__") and field.endswith("__") and not any(field == escape for escape, _ in _ESCAPES):
        return field[2:-2]
    for escape, plain in _ESCAPES:
        field = field.replace(escape, plain)
    return field


_OPERATORS: dict[str, tuple[int, Callable[..., Closure]]] = {
    "||": (2, _logic(True)),
    "&&": (2, _logic(False)),
    "?:": (3, _ternary),
    "==": (2, _paid(operators.equal)),
    "!=": (2, _paid(lambda a, b: not operators.equal(a, b))),
    "!": (1, _function(lambda a: not boolean(a))),
    **{op: (2, _function(function)) for op, function in operators.BINARY.items()},
    "+": (2, _paid(operators.BINARY["+"])),
    "in": (2, _paid(operators.BINARY["in"])),
    "neg": (1, _function(operators.negate)),
}
