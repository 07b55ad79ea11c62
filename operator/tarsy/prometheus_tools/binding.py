"""Binds the selectors of a PromQL query to namespaces.

Decision: a query is read token by token, and every selector in it gets a matcher of the namespace label, which narrows
whatever else the query says, because Prometheus combines matchers of one label by AND. Text that this reader does not
understand is refused, not passed on: extensions of other databases (`or` within braces, WITH templates) would widen a
selector. A name in the place of an operand is a metric unless a parenthesis follows it, as in Prometheus' own grammar.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

from tarsy.kubernetes_tools.kinds import Refused
from tarsy.kubernetes_tools.reach import NamespaceReach
from tarsy.prometheus_tools.series import NAME, quote

LONGEST_QUERY = 10_000
_TOKEN = re.compile(
    r"""(?P<space>\s+|\#[^\n]*)
    |(?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`[^`]*`)
    |(?P<number>(?:\d|\.\d)[\w.]*(?:(?<=[eE])[+-]\d+)?)
    |(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)
    |(?P<range>\[[\w.:\s]*\])
    |(?P<compare>==|!=|>=|<=|>(?!=)|<(?!=))
    |(?P<operator>[-+*/%^])
    |(?P<mark>[(){},@])""",
    re.VERBOSE | re.ASCII,
)
_MATCHERS = re.compile(
    r"""\s*(?:
    (?P<label>[a-zA-Z_][a-zA-Z0-9_]*|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    \s*(?P<op>=~|!~|!=|=)\s*
    (?P<value>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`[^`]*`)
    |(?P<metric>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'))\s*(?:,|$)""",
    re.VERBOSE | re.ASCII,
)
_LABELS = re.compile(r"\s*(?:[a-zA-Z_:][a-zA-Z0-9_:]*\s*(?:,\s*[a-zA-Z_:][a-zA-Z0-9_:]*\s*)*,?\s*)?", re.ASCII)
_GROUPING = frozenset({"by", "without"})
_MATCHING = frozenset({"on", "ignoring"})
_SIDES = frozenset({"group_left", "group_right"})
_SETS = frozenset({"and", "or", "unless", "atan2"})
_NUMBERS = frozenset({"inf", "nan"})
_NOT_OFFERED = frozenset({"info"})
"""Functions that read series by other ways than selectors."""


@dataclass(frozen=True, slots=True)
class LabelMatcher:
    """One condition in braces, its value as written, without quotes."""

    label: str
    op: str
    value: str


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    end: int


@dataclass(frozen=True, slots=True)
class Binding:
    """Namespaces that queries keep to.

    Attributes:
        reach: the namespaces.
        label: the label that has the namespace.
        shared: names of metrics that are about no namespace, such as those of nodes, readable for all; None: none.
    """

    reach: NamespaceReach
    label: str = "namespace"
    shared: re.Pattern[str] | None = None

    def matcher(self) -> str | None:
        """Returns the matcher that selectors get; None if all namespaces are in reach."""
        if self.reach.namespaces is None:
            return None
        names = sorted(self.reach.namespaces)
        if len(names) == 1:
            return f"{self.label}={quote(names[0])}"
        return f"{self.label}=~{quote('|'.join(re.escape(name) for name in names))}"

    def bind(self, query: str) -> str:
        """Returns a query whose selectors are bound. Raises Refused: it is too long, or not understood."""
        checked_length(query)
        matcher = self.matcher()
        return query if matcher is None else _Binder(query, matcher, self._is_shared).bound()

    def admits(self, query: str) -> bool:
        """Reports whether a query of someone else's, such as a rule's, names no namespace out of reach."""
        if self.reach.namespaces is None:
            return True
        try:
            found = _Binder(query, "", lambda _: False)
            found.bound()
        except Refused:
            return False
        return all(self._admits(m) for m in found.matchers if m.label == self.label and m.op in ("=", "=~"))

    def _admits(self, matcher: LabelMatcher) -> bool:
        if matcher.op == "=":
            return matcher.value == "" or self.reach.includes(matcher.value)
        if matcher.value in (".*", ".+", ""):
            return True
        return all(self.reach.includes(name) for name in matcher.value.split("|"))

    def _is_shared(self, name: str) -> bool:
        return self.shared is not None and self.shared.fullmatch(name) is not None


def checked_length(query: str) -> str:
    """Returns a query of a sane length. Raises Refused for any other."""
    if not query.strip():
        raise Refused("the query is empty")
    if len(query) > LONGEST_QUERY:
        raise Refused(f"the query has {len(query)} characters; {LONGEST_QUERY} are the most")
    return query


class _Binder:
    """Reads one query. `matchers` are those that the query itself has."""

    def __init__(self, query: str, matcher: str, shared: Callable[[str], bool]) -> None:
        self._query, self._matcher, self._shared = query, matcher, shared
        self._tokens = list(_tokens(query))
        self._at = 0
        self._written: list[str] = []
        self.matchers: list[LabelMatcher] = []

    def bound(self) -> str:
        operand, last = True, ""  # whether an operand may follow; the token before
        while (token := self._next()) is not None:
            word = token.text.lower()
            match token.kind:
                case "string" | "number" if operand:
                    operand = False
                case "name" if operand:
                    operand = self._name(token, last)
                case "name":
                    operand = self._after_operand(token, last)
                case "range" if not operand:
                    pass
                case "compare" | "operator" if not operand or word in ("+", "-"):
                    operand = True
                case "mark" if word == "{" and operand:
                    self._braces(None)
                    operand = False
                case "mark" if word == "(" and operand:
                    pass
                case "mark" if word == ")":
                    operand = False
                case "mark" if word == "," and not operand:
                    operand = True
                case "mark" if word == "@" and not operand:
                    self._moment()
                case _:
                    raise self._unclear(token)
            last = word
        return "".join(self._written)

    def _name(self, token: _Token, last: str) -> bool:
        """Reads a name in the place of an operand; returns whether an operand may follow."""
        word, following = token.text.lower(), self._peek()
        if word in _MATCHING and following == "(" and _is_binary(last):
            self._label_list()
            return True
        if word in _SIDES and last in _MATCHING:
            if following == "(":
                self._label_list()
            return True
        if word == "bool" and last in ("==", "!=", ">", "<", ">=", "<="):
            return True
        if word in _NUMBERS and following not in ("(", "{"):
            return False
        if following == "(":
            if word in _NOT_OFFERED:
                raise Refused(f"the function {word} is not offered here: join the series by on() instead")
            return True
        if following.lower() in _GROUPING and self._peek(1) == "(":
            self._next()
            self._label_list()
            if self._peek() != "(":
                raise self._unclear(token)
            return True
        if following == "{":
            self._braces(token.text)
        elif not self._shared(token.text):
            self._written.append(f"{{{self._matcher}}}")
        return False

    def _after_operand(self, token: _Token, last: str) -> bool:
        word = token.text.lower()
        if word in _SETS:
            return True
        if word in _GROUPING and last == ")" and self._peek() == "(":
            self._label_list()
            return False
        if word == "offset":
            self._signed_number(token)
            return False
        raise self._unclear(token)

    def _moment(self) -> None:
        if self._peek().lower() in ("start", "end"):
            for expected in (None, "(", ")"):
                found = self._next()
                if found is None or expected not in (None, found.text):
                    raise Refused("`@` in the query is followed by neither a time nor start() or end()")
            return
        self._signed_number(None)

    def _signed_number(self, token: _Token | None) -> None:
        found = self._next()
        if found is not None and found.text in ("-", "+"):
            found = self._next()
        if found is None or found.kind != "number":
            raise self._unclear(found or token)

    def _braces(self, name: str | None) -> None:
        """Writes the matchers of a selector with the one of the namespaces before them."""
        if name is not None:
            self._next()
        opened = self._at
        start = self._tokens[opened - 1].end
        end = _end_of_braces(self._query, start)
        if end is None:
            raise Refused("a brace in the query is not closed")
        inside = self._query[start:end]
        own = _matchers(inside)
        self.matchers += own
        plain = all(m.label != NAME and "\\" not in m.label for m in own)
        exempt = name is not None and self._shared(name) and plain
        parts = [part for part in ("" if exempt else self._matcher, inside.strip()) if part]
        self._written.append(",".join(parts) + "}")
        # Tokens inside the braces have been read as matchers.
        while self._at < len(self._tokens) and self._tokens[self._at].end <= end + 1:
            self._at += 1

    def _label_list(self) -> None:
        self._next()
        start = self._tokens[self._at - 1].end
        end = self._query.find(")", start)
        if end < 0 or not _LABELS.fullmatch(self._query[start:end]):
            raise Refused("a list of labels in the query is not understood: write label names with commas")
        self._written.append(self._query[start:end])
        while self._at < len(self._tokens) and self._tokens[self._at].end <= end:
            self._at += 1
        self._next()

    def _next(self) -> _Token | None:
        """Writes and returns the next token that is no space."""
        while self._at < len(self._tokens):
            token = self._tokens[self._at]
            self._at += 1
            self._written.append(token.text)
            if token.kind != "space":
                return token
        return None

    def _peek(self, skip: int = 0) -> str:
        rest = (self._tokens[at] for at in range(self._at, len(self._tokens)))
        following = (token.text for token in rest if token.kind != "space")
        return next(islice(following, skip, None), "")

    def _unclear(self, token: _Token | None) -> Refused:
        where = f"near {token.text[:40]!r}" if token else "at its end"
        return Refused(f"the query is not understood {where}: only plain PromQL is sent on")


def _is_binary(word: str) -> bool:
    return word in _SETS or bool(re.fullmatch(r"==|!=|>=|<=|>|<|[-+*/%^]|bool", word))


def _matchers(inside: str) -> list[LabelMatcher]:
    found, at = [], 0
    while inside[at:].strip():
        part = _MATCHERS.match(inside, at)
        if part is None:
            raise Refused(f'the matchers {{{inside[:80]}}} are not understood: write label="value" with commas')
        if part["metric"]:
            found.append(LabelMatcher(NAME, "=", part["metric"][1:-1]))
        else:
            found.append(LabelMatcher(part["label"].strip("\"'"), part["op"], part["value"][1:-1]))
        at = part.end()
    return found


def _end_of_braces(query: str, start: int) -> int | None:
    at = start
    while at < len(query):
        if query[at] == "}":
            return at
        string = re.compile(r"\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|`[^`]*`").match(query, at)
        at = string.end() if string else at + 1
    return None


def _tokens(query: str) -> Iterator[_Token]:
    at = 0
    while at < len(query):
        found = _TOKEN.match(query, at)
        if found is None:
            # Within braces stand characters of their own; they are read as matchers there, and nowhere else.
            if query[at] in "=~!":
                at += 1
                yield _Token("matching", query[at - 1], at)
                continue
            raise Refused(f"the query is not understood near {query[at : at + 40]!r}: only plain PromQL is sent on")
        at = found.end()
        yield _Token(str(found.lastgroup), found.group(), at)
