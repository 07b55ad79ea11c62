"""Parses expressions with a tokenizer and a precedence parser for the CEL grammar; does not expand macros."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from .errors import CelSyntaxError


@dataclass(frozen=True, slots=True)
class Literal:
    value: Any


@dataclass(frozen=True, slots=True)
class Ident:
    name: str


@dataclass(frozen=True, slots=True)
class Select:
    """`operand.field`, or `operand.?field` when optional."""

    operand: Node
    field: str
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Index:
    operand: Node
    index: Node
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """A function or operator; `target` is what a method is called on."""

    function: str
    target: Node | None
    arguments: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class ListOf:
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class MapOf:
    entries: tuple[tuple[Node, Node], ...]


Node = Literal | Ident | Select | Index | Call | ListOf | MapOf

_TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*)
      | (?P<float>\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\.\d+(?:[eE][+-]?\d+)?)
      | (?P<int>0[xX][0-9a-fA-F]+[uU]?|\d+[uU]?)
      | (?P<string>(?:[rR][bB]?|[bB][rR]?)?(?:\"\"\"(?:[^\\]|\\.)*?\"\"\"|'''(?:[^\\]|\\.)*?'''
          |"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'))
      | (?P<ident>[A-Za-z_][A-Za-z0-9_]*|`[A-Za-z0-9_.\-/ ]+`)
      | (?P<op>\|\||&&|==|!=|<=|>=|\[\?|\.\?|[-+*/%<>!?:.,()\[\]{}])""",
    re.VERBOSE | re.DOTALL,
)
_RAW = re.compile(r"""([rR][bB]|[bB][rR]|[rR])(\"\"\"|'''|"|')(.*)\2""", re.DOTALL)
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|X[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2}|.)", re.DOTALL)
_SIMPLE = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_RELATIONS = ("==", "!=", "<=", ">=", "<", ">", "in")
_RESERVED = {"as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop", "package",
             "namespace", "return", "var", "void", "while"}  # fmt: skip
_KEYWORDS = {"true": True, "false": False, "null": None}


def parse(text: str) -> Node:
    """Parses an expression into a syntax tree.

    Raises:
        CelSyntaxError: it is none.
    """
    parser = _Parser(_tokens(text), text)
    node = parser.expression()
    parser.expect_end()
    return node


@dataclass(slots=True)
class _Token:
    kind: str
    text: str
    at: int


def _tokens(text: str) -> list[_Token]:
    found, at = [], 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise _error(text, at, f"token recognition error at: '{text[at]}'")
        if match.lastgroup != "space":
            found.append(_Token(str(match.lastgroup), match[0], at))
        at = match.end()
    return found


def _error(text: str, at: int, what: str) -> CelSyntaxError:
    line = text.count("\n", 0, at) + 1
    return CelSyntaxError(f"ERROR: <input>:{line}:{at - text.rfind(chr(10), 0, at)}: Syntax error: {what}")


@dataclass(slots=True)
class _Parser:
    tokens: list[_Token]
    text: str
    at: int = field(default=0)

    def expression(self) -> Node:
        condition = self._binary_or()
        if not self._take("?"):
            return condition
        yes = self._binary_or()
        self._expect(":")
        return Call("?:", None, (condition, yes, self.expression()))

    def expect_end(self) -> None:
        if self.at < len(self.tokens):
            raise self._unexpected()

    def _binary_or(self) -> Node:
        node = self._binary_and()
        while self._take("||"):
            node = Call("||", None, (node, self._binary_and()))
        return node

    def _binary_and(self) -> Node:
        node = self._relation()
        while self._take("&&"):
            node = Call("&&", None, (node, self._relation()))
        return node

    def _relation(self) -> Node:
        node = self._sum()
        while op := self._take(*_RELATIONS):
            node = Call(op, None, (node, self._sum()))
        return node

    def _sum(self) -> Node:
        node = self._product()
        while op := self._take("+", "-"):
            node = Call(op, None, (node, self._product()))
        return node

    def _product(self) -> Node:
        node = self._unary()
        while op := self._take("*", "/", "%"):
            node = Call(op, None, (node, self._unary()))
        return node

    def _unary(self) -> Node:
        if self._take("!"):
            return Call("!", None, (self._unary(),))
        if self._take("-"):
            operand = self._unary()
            if isinstance(operand, Literal) and isinstance(operand.value, (int, float)):
                return Literal(-operand.value)
            return Call("neg", None, (operand,))
        return self._member()

    def _member(self) -> Node:
        node = self._primary()
        while True:
            if op := self._take(".", ".?"):
                name = self._identifier().strip("`")
                if op == "." and self._take("("):
                    node = Call(name, node, self._until(")"))
                else:
                    node = Select(node, name, op == ".?")
            elif op := self._take("[", "[?"):
                index = self.expression()
                self._expect("]")
                node = Index(node, index, op == "[?")
            else:
                return node

    def _primary(self) -> Node:
        token = self._next()
        if token.kind == "int":
            return Literal(int(token.text.rstrip("uU"), 0 if token.text[:2] in ("0x", "0X") else 10))
        if token.kind == "float":
            return Literal(float(token.text))
        if token.kind == "string":
            return Literal(_unquote(token.text))
        if token.kind == "ident":
            return self._named(token)
        match token.text:
            case "(":
                node = self.expression()
                self._expect(")")
                return node
            case "[":
                return ListOf(self._until("]"))
            case "{":
                return self._map()
            case ".":
                return self._named(self._next())
        self.at -= 1
        raise self._unexpected()

    def _named(self, token: _Token) -> Node:
        if token.text in _KEYWORDS:
            return Literal(_KEYWORDS[token.text])
        if token.text in _RESERVED or token.text == "in":
            raise _error(self.text, token.at, f"reserved identifier: {token.text}")
        if self._take("("):
            return Call(token.text, None, self._until(")"))
        return Ident(token.text)

    def _map(self) -> Node:
        entries = []
        while not self._take("}"):
            key = self.expression()
            self._expect(":")
            entries.append((key, self.expression()))
            if not self._take(","):
                self._expect("}")
                break
        return MapOf(tuple(entries))

    def _until(self, end: str) -> tuple[Node, ...]:
        items: list[Node] = []
        while not self._take(end):
            items.append(self.expression())
            if not self._take(","):
                self._expect(end)
                break
        return tuple(items)

    def _take(self, *texts: str) -> str:
        if self.at < len(self.tokens):
            token = self.tokens[self.at]
            if token.kind in ("op", "ident") and token.text in texts:
                self.at += 1
                return token.text
        return ""

    def _expect(self, text: str) -> None:
        if not self._take(text):
            raise self._unexpected(f", expecting '{text}'")

    def _next(self) -> _Token:
        if self.at >= len(self.tokens):
            raise self._unexpected()
        self.at += 1
        return self.tokens[self.at - 1]

    def _identifier(self) -> str:
        token = self._next()
        if token.kind != "ident":
            self.at -= 1
            raise self._unexpected()
        return token.text

    def _unexpected(self, more: str = "") -> CelSyntaxError:
        token = self.tokens[self.at] if self.at < len(self.tokens) else _Token("end", "<EOF>", len(self.text))
        return _error(self.text, token.at, f"mismatched input '{token.text}'{more}")


def _unquote(text: str) -> str | bytes:
    if match := _RAW.fullmatch(text):
        return match[3].encode() if "b" in match[1].lower() else match[3]
    is_bytes = text[0] in "bB"
    text = text[1:] if is_bytes else text
    quote = 3 if text[:3] in ('"""', "'''") else 1
    body = text[quote:-quote]
    if not is_bytes:
        return _ESCAPE.sub(lambda m: _escaped(m[1]), body)
    out, at = bytearray(), 0
    for match in _ESCAPE.finditer(body):
        out += body[at : match.start()].encode()
        char = _escaped(match[1])
        out += bytes([ord(char)]) if match[1][0] in "xX0123" else char.encode()
        at = match.end()
    return bytes(out + body[at:].encode())


def _escaped(code: str) -> str:
    if code[0] in "xXuU":
        return chr(int(code[1:], 16))
    if len(code) == 3:
        return chr(int(code, 8))
    if code in _SIMPLE:
        return _SIMPLE[code]
    if code in "\\?\"'`":
        return code
    raise CelSyntaxError(f"ERROR: unsupported escape '\\{code}'")
