"""Tests that every selector of a query is bound to the namespaces of a run, and that unclear text is refused."""

import re

import pytest

from for_each import for_each
from tarsy.kubernetes_tools.kinds import Refused
from tarsy.kubernetes_tools.reach import NamespaceReach
from tarsy.prometheus_tools.binding import LONGEST_QUERY, Binding

SHOP = Binding(NamespaceReach(frozenset(["shop"])))
NS = 'namespace="shop"'


@for_each(
    ("query", "bound"),
    [
        ("up", "up{N}"),
        ("  up  ", "  up{N}  "),
        ("up{}", "up{N}"),
        ('up{job="a"}', 'up{N,job="a"}'),
        ("up {job='a', }", "up {N,job='a',}"),
        ('{__name__=~".+"}', '{N,__name__=~".+"}'),
        ('{"metric.name", a="b"}', '{N,"metric.name", a="b"}'),
        ('up{namespace="pay"}', 'up{N,namespace="pay"}'),
        ('up{namespace=~".*",namespace!=""}', 'up{N,namespace=~".*",namespace!=""}'),
        ('up{a="}"}', 'up{N,a="}"}'),
        ('up{a="\\"} or x{"}', 'up{N,a="\\"} or x{"}'),
        ("up{a=`}`}", "up{N,a=`}`}"),
        ("rate(x_total[5m])", "rate(x_total{N}[5m])"),
        ("rate(x_total{a=~'b|c'}[5m:1m] offset -1h)", "rate(x_total{N,a=~'b|c'}[5m:1m] offset -1h)"),
        ("sum by (job, a) (up)", "sum by (job, a) (up{N})"),
        ("sum(up) without (job)", "sum(up{N}) without (job)"),
        ("topk(5, sum by() (x)) > 0.5", "topk(5, sum by() (x{N})) > 0.5"),
        ("a / on(x) group_left(y) b", "a{N} / on(x) group_left(y) b{N}"),
        ("a * ignoring(x) group_right b", "a{N} * ignoring(x) group_right b{N}"),
        ("a == bool b and on() c unless d", "a{N} == bool b{N} and on() c{N} unless d{N}"),
        ("a > 1e-3 or -b < 0x1F", "a{N} > 1e-3 or -b{N} < 0x1F"),
        ("x @ 1609746000 + y @ end() - z @ start()", "x{N} @ 1609746000 + y{N} @ end() - z{N} @ start()"),
        ("vector(1) + Inf + NaN + time()", "vector(1) + Inf + NaN + time()"),
        ('label_replace(up, "a", "$1", "b", "(.*)")', 'label_replace(up{N}, "a", "$1", "b", "(.*)")'),
        ("up # a comment {", "up{N} # a comment {"),
        ("a:b:c", "a:b:c{N}"),
        ("histogram_quantile(0.9, sum by (le) (rate(h_bucket[5m])))",) * 2,
        # Names that are words of the language are metrics where an operand stands.
        ("by", "by{N}"),
        ("start", "start{N}"),
        ("sum{}", "sum{N}"),
        ("count", "count{N}"),
        ("up + offset", "up{N} + offset{N}"),
        ("up and and", "up{N} and and{N}"),
        ("group_left", "group_left{N}"),
        ("bool", "bool{N}"),
    ],
)
def test_every_selector_gets_the_namespace(query: str, bound: str) -> None:
    expected = bound.replace("h_bucket", "h_bucket{N}").replace("N}", f"{NS}}}").replace("{N,", f"{{{NS},")
    assert SHOP.bind(query) == expected


@for_each(
    "query",
    [
        "",
        " ",
        "up{",
        'up{a="b',
        'up{a="b" or c="d"}',  # VictoriaMetrics: alternatives widen a selector
        'up{a="b"} # {',  # a plain comment is kept; see below
        "up{a=\"b\" # }\n or c='d'}",
        "WITH (x = up) x",
        "up down",
        "up by",
        "sum by (a # )\n) (up)",
        "sum by (a(b)) (up)",
        "info(up)",
        "up[5m+1m]",
        "up; drop",
        "up @ x",
        "up offset up",
        "up\u00a0",
        "ｕｐ",
        "$x",
        "* up",
        "up =~ up",
        "x" * (LONGEST_QUERY + 1),
    ],
)
def test_a_query_that_is_not_understood_is_not_sent(query: str) -> None:
    if query == 'up{a="b"} # {':
        assert SHOP.bind(query) == f'up{{{NS},a="b"}} # {{'
        return
    with pytest.raises(Refused):
        SHOP.bind(query)


@pytest.mark.parametrize("length", [LONGEST_QUERY - 1, LONGEST_QUERY])
def test_a_query_of_the_greatest_length_is_sent(length: int) -> None:
    assert SHOP.bind("x" * length).endswith(f"{{{NS}}}")


def test_without_limits_of_reach_a_query_stays_as_it_is() -> None:
    assert Binding(NamespaceReach()).bind('up{a="b" or c="d"}') == 'up{a="b" or c="d"}'


def test_several_namespaces_are_alternatives() -> None:
    two = Binding(NamespaceReach(frozenset(["shop", "a.b"])), label="exported_namespace")
    assert two.bind("up") == 'up{exported_namespace=~"a\\\\.b|shop"}'


@pytest.mark.parametrize(
    ("query", "free"),
    [
        ("node_load1", True),
        ('node_load1{instance="a"}', True),
        ("node_load1 + up", False),
        ("a_node_load1", False),
        ('{__name__="node_load1"}', False),
        ('node_load1{__name__=~".+"}', False),
        ('node_load1{"__name\\u005f_"=~".+"}', False),
    ],
)
def test_metrics_of_no_namespace_are_shared_by_their_literal_name(query: str, free: bool) -> None:
    binding = Binding(NamespaceReach(frozenset(["shop"])), shared=re.compile("node_.+"))
    assert (binding.bind(query) == query) is free


@pytest.mark.parametrize(
    ("rule", "shown"),
    [
        ("up == 0", True),
        ('up{namespace="shop"} == 0', True),
        ('up{namespace="pay"} == 0', False),
        ('up{namespace=~"shop|pay"}', False),
        ('up{namespace=~".+"}', True),
        ('up{namespace!="pay"}', True),
        ('up{namespace="pa\\x79"}', False),
        ('up{a="b" or c="d"}', False),
    ],
)
def test_a_rule_about_another_namespace_is_hidden(rule: str, shown: bool) -> None:
    assert SHOP.admits(rule) is shown
