"""Whatever a model writes as a query: each selector that is sent on is bound, or nothing is sent on."""

import re

from hypothesis import given
from hypothesis import strategies as st

from tarsy.kubernetes_tools.kinds import Refused
from tarsy.kubernetes_tools.reach import NamespaceReach
from tarsy.prometheus_tools.binding import Binding

MATCHER = 'namespace="shop"'
SHOP = Binding(NamespaceReach(frozenset(["shop"])), shared=re.compile("node_.+"))
MARK = "«»"
"""Stands for the matcher in what a strategy writes, where it belongs."""

NAMES = st.sampled_from(["up", "a:b", "x_total", "by", "offset", "sum", "bool", "start", "on", "and", "group_left"])
STRINGS = st.sampled_from(['"a"', "'}'", "`{`", r'"\"}"', '"# no comment"', '"up{"', '""', '".*"'])
SPACE = st.sampled_from(["", " ", "\n", " # up{ }\n", "\t"])
LABELS = st.sampled_from(["job", "namespace", "pod", '"quoted.label"'])
MATCHERS = st.builds("{}{}{}".format, LABELS, st.sampled_from(["=", "!=", "=~", "!~"]), STRINGS)
DURATIONS = st.sampled_from(["[5m]", "[1h:5m]", "[30s]"])


def _selector(name: str, inside: list[str] | None) -> str:
    return f"{name}{{{MARK}}}" if not inside else f"{name}{{{MARK},{','.join(inside)}}}"


SELECTORS = st.builds(_selector, NAMES, st.none() | st.lists(MATCHERS, max_size=3)) | st.builds(
    _selector, st.just(""), st.lists(MATCHERS, min_size=1, max_size=3)
)
SHARED = st.sampled_from(["node_load1", 'node_cpu_seconds_total{mode="idle"}'])
NUMBERS = st.sampled_from(["1", "0x1F", "1e-3", "Inf", "NaN", "-2"])


def _deeper(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    binary = st.sampled_from([*"+-*/%^>", "==bool ", "<=", " and ", " or ", " unless ", " atan2 "])
    matching = st.sampled_from(["", "on(job)", "ignoring (a, b)", "on() group_left(x)", "ignoring(a) group_right()"])
    return st.one_of(
        st.builds("{} {} {} {}".format, inner, binary, matching, inner),
        st.builds("({}{})".format, SPACE, inner),
        st.builds("sum by (job, a) ({})".format, inner),
        st.builds("topk(5, {}) without (pod)".format, inner),
        st.builds('label_replace({}, "a", "$1", "b", "(.*)")'.format, inner),
        st.builds("histogram_quantile(0.9, rate({}{}))".format, SELECTORS, DURATIONS),
        st.builds("{} offset -1h".format, SELECTORS),
        st.builds("{} @ end()".format, SELECTORS),
    )


QUERIES = st.recursive(SELECTORS | SHARED | NUMBERS, _deeper, max_leaves=6)
MARKS = st.sampled_from([*"{}(),@[]=+-#~!|", "or", "offset"])
PIECES = NAMES | STRINGS | MATCHERS | DURATIONS | NUMBERS | SPACE | MARKS
SOUP = st.lists(PIECES, max_size=12).map("".join) | st.text(st.sampled_from("up{}()\"'`#\\,=~ \n"), max_size=20)


@given(QUERIES)
def test_every_selector_of_a_query_is_bound_and_nothing_else_is_changed(query: str) -> None:
    written = query.replace(f"{{{MARK}}}", "").replace(f"{MARK},", "")
    assert SHOP.bind(written).split() == query.replace(MARK, MATCHER).split()


@given(SOUP)
def test_text_that_is_no_query_is_refused_or_bound(text: str) -> None:
    try:
        bound = SHOP.bind(text)
    except Refused as error:
        assert str(error)
        return
    assert _unbound(bound) == []


_QUOTED = re.compile(r"\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|`[^`]*`|#[^\n]*")


def _unbound(query: str) -> list[str]:
    """Returns the braces of a query that do not begin with the matcher, found without reading its grammar."""
    strings: list[str] = []

    def kept(found: re.Match[str]) -> str:
        strings.append(found.group())
        return f"\0{len(strings) - 1}\0" if found.group()[0] != "#" else " "

    plain = _QUOTED.sub(kept, query)
    matcher = re.compile(r"namespace=\0(\d+)\0")
    opened = [matcher.match(plain, at.end()) for at in re.finditer(r"\{", plain)]
    return [query for found in opened if found is None or strings[int(found[1])] != '"shop"']
