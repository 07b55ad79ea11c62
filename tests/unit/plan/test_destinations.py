"""Where URLs in specs may lead."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarsy.plan.destinations import Destinations, domain_of
from tarsy.plan.place import Place

ANYWHERE, POD = Destinations(), Destinations(in_pod=True)
METADATA = ("169.254.169.254", "fe80::1", "0.0.0.0", "::", "224.0.0.1", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe")
INNER = ("10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "fd00::1", "::ffff:10.0.0.1", "2002:0a00:0001::1")


def url(host: str) -> str:
    return f"http://[{host}]:8080/mcp" if ":" in host else f"http://{host}:8080/mcp"


@pytest.mark.parametrize("rule", [ANYWHERE, POD])
@pytest.mark.parametrize("address", METADATA)
def test_addresses_that_are_nobodys_server_are_refused_everywhere(rule: Destinations, address: str) -> None:
    assert "link-local" in (rule.why_not(url(address), "shop") or "")
    assert "link-local" in (rule.why_not_at("harmless.example", address, "shop") or "")
    assert "link-local" in (rule.why_not_at("tools.shop.svc", address, "shop") or "")


@pytest.mark.parametrize("address", INNER)
def test_private_addresses_are_refused_in_a_pod_and_nowhere_else(address: str) -> None:
    assert "not public" in (POD.why_not(url(address), "shop") or "")
    assert "not public" in (POD.why_not_at("harmless.example", address, "shop") or "")
    assert ANYWHERE.why_not(url(address), "shop") is None
    assert ANYWHERE.why_not_at("harmless.example", address, "shop") is None


@pytest.mark.parametrize("address", ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"])
def test_the_pod_itself_is_refused_even_as_a_service_of_the_namespace(address: str) -> None:
    assert "operator's own pod" in (POD.why_not(url(address), "shop") or "")
    assert "operator's own pod" in (POD.why_not_at("tools.shop.svc", address, "shop") or "")
    assert ANYWHERE.why_not(url(address), "shop") is None


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST.", "a.localhost"])
def test_localhost_is_the_pod_itself(host: str) -> None:
    assert "operator's own pod" in (POD.why_not(url(host), "shop") or "")
    assert ANYWHERE.why_not(url(host), "shop") is None


@pytest.mark.parametrize(
    "host",
    ["tools.shop.svc", "tools.shop.svc.", "TOOLS.shop.SVC.cluster.local", "tools.shop.svc.cluster.local."],
)
def test_services_of_the_objects_own_namespace_are_reached(host: str) -> None:
    assert POD.why_not(url(host), "shop") is None
    assert POD.why_not_at(Place.of(url(host)).host, "10.0.0.1", "shop") is None


@pytest.mark.parametrize(
    "host",
    [
        "tools.shop",
        "x.shop.svc.attacker.example",
        "tools.shop.svc.cluster.local.attacker.example",
        "tools.shop.svc.corp",
        "pod-0.tools.shop.svc",
        "shop.svc",
        "svc.shop",
        "tools.shop.pod",
    ],
)
def test_other_names_are_no_services_of_the_namespace(host: str) -> None:
    assert "not public" in (POD.why_not_at(host, "10.0.0.1", "shop") or "")
    assert POD.why_not_at(host, "93.184.215.14", "shop") is None


def test_a_service_that_is_an_alias_is_judged_as_any_other_name() -> None:
    assert "not public" in (POD.why_not_at("tools.shop.svc", "10.0.0.1", "shop", alias=True) or "")
    assert POD.why_not_at("tools.shop.svc", "93.184.215.14", "shop", alias=True) is None


def test_the_clusters_domain_is_a_setting() -> None:
    rule = Destinations.of([], in_pod=True, cluster_domain=".Corp.Example.")
    assert rule.why_not_at("tools.shop.svc.corp.example", "10.0.0.1", "shop") is None
    assert rule.why_not_at("tools.shop.svc.cluster.local", "10.0.0.1", "shop") is not None
    assert rule.why_not("http://tools.other.svc.corp.example/", "shop") is not None
    with pytest.raises(ValueError, match="is no domain of a cluster"):
        Destinations.of([], in_pod=True, cluster_domain="a b")


@pytest.mark.parametrize(
    ("text", "domain"),
    [
        ("search tarsy-system.svc.corp.example svc.corp.example corp.example eu.internal", "corp.example"),
        ("nameserver 10.0.0.10\nsearch a.svc.cluster.local svc.cluster.local.\noptions ndots:5", "cluster.local"),
        ("search lan", "cluster.local"),
        ("search svc.", "cluster.local"),
        ("", "cluster.local"),
    ],
)
def test_the_clusters_domain_stands_in_a_pods_resolv_conf(text: str, domain: str) -> None:
    assert domain_of(text) == domain


@pytest.mark.parametrize(
    ("host", "asked"),
    [
        ("tools.shop.svc", "tools.shop.svc.cluster.local."),
        ("tools.shop.svc.cluster.local", "tools.shop.svc.cluster.local."),
        ("api.openai.com", "api.openai.com."),
        ("ollama", "ollama"),
        ("a.corp.example", "a.corp.example"),
    ],
)
def test_names_are_looked_up_in_a_pod_without_its_search_domains_unless_they_were_opened(host: str, asked: str) -> None:
    assert Destinations.of(["ollama", "*.corp.example"], in_pod=True).asked(host) == asked
    assert ANYWHERE.asked(host) == host


@pytest.mark.parametrize("host", ["tools.other.svc", "tools.other.svc.cluster.local", "kubernetes.default.svc"])
def test_services_of_other_namespaces_are_not(host: str) -> None:
    why = POD.why_not(url(host), "shop")
    assert why is not None and "not of shop" in why and f"--url-host {host}" in why


@pytest.mark.parametrize("host", ["tools", "tools.other", "10-0-0-1.shop.pod.cluster.local"])
def test_names_that_may_be_anybodys_are_judged_by_their_addresses(host: str) -> None:
    assert POD.why_not_at(host, "93.184.215.14", "shop") is None
    assert "not public" in (POD.why_not_at(host, "10.0.0.1", "shop") or "")


@pytest.mark.parametrize(
    ("opened", "host", "address"),
    [
        ("models.prod.svc", "models.prod.svc", "10.0.0.1"),
        ("*.corp.example", "a.b.corp.example", "10.0.0.1"),
        ("localhost", "localhost", "127.0.0.1"),
        ("10.0.0.0/8", "10.1.2.3", "10.1.2.3"),
        ("10.1.2.3", "mcp.corp.example", "10.1.2.3"),
        ("fd00::/8", "fd00::5", "fd00::5"),
        ("[fd00::5]", "fd00::5", "fd00::5"),
        ("169.254.169.254", "169.254.169.254", "169.254.169.254"),
    ],
)
def test_the_administrator_opens_names_addresses_and_networks(opened: str, host: str, address: str) -> None:
    rule = Destinations.of([opened], in_pod=True)
    assert rule.why_not(url(host), "shop") is None and rule.why_not_at(host, address, "shop") is None


@pytest.mark.parametrize(
    ("opened", "host", "address"),
    [
        ("*.corp.example", "corp.example", "10.0.0.1"),
        ("*.corp.example", "evilcorp.example", "10.0.0.1"),
        ("10.0.0.0/8", "11.example", "192.168.0.1"),
        ("models.prod.svc", "models.prod.svc.evil.example", "10.0.0.1"),
    ],
)
def test_nothing_beside_it_is_opened(opened: str, host: str, address: str) -> None:
    assert Destinations.of([opened], in_pod=True).why_not_at(host, address, "shop") is not None


@pytest.mark.parametrize(
    "word", ["", "http://a.example", "a.example:80", "*", "a*.example", "user@a", "a b", "b\u00fccher.example"]
)
def test_a_wrong_word_of_the_administrator_is_named(word: str) -> None:
    with pytest.raises(ValueError, match="is not a host name, an address or a network"):
        Destinations.of([word], in_pod=True)


@given(st.ip_addresses())
def test_no_spelling_of_an_inner_address_gets_through(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    if not address.is_global:
        assert POD.why_not_at("harmless.example", str(address), "shop") is not None
