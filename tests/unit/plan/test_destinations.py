"""Where URLs in specs may lead."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarsy.plan.destinations import Destinations

ANYWHERE, POD = Destinations(), Destinations(in_pod=True)
METADATA = ("169.254.169.254", "fe80::1", "0.0.0.0", "::", "224.0.0.1", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe")
INNER = ("10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "fd00::1", "::ffff:10.0.0.1", "2002:0a00:0001::1")


def url(host: str) -> str:
    return f"http://[{host}]:8080/mcp" if ":" in host else f"http://{host}:8080/mcp"


@pytest.mark.parametrize("rule", [ANYWHERE, POD])
@pytest.mark.parametrize("address", METADATA)
def test_addresses_that_are_nobodys_server_are_refused_everywhere(rule: Destinations, address: str) -> None:
    assert "link-local" in (rule.why_not(url(address), "shop") or "")
    assert "link-local" in (rule.why_not_at("https://harmless.example/", address, "shop") or "")
    assert "link-local" in (rule.why_not_at("https://tools.shop.svc/", address, "shop") or "")


@pytest.mark.parametrize("address", INNER)
def test_private_addresses_are_refused_in_a_pod_and_nowhere_else(address: str) -> None:
    assert "not public" in (POD.why_not(url(address), "shop") or "")
    assert "not public" in (POD.why_not_at("https://harmless.example/", address, "shop") or "")
    assert ANYWHERE.why_not(url(address), "shop") is None
    assert ANYWHERE.why_not_at("https://harmless.example/", address, "shop") is None


@pytest.mark.parametrize("address", ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"])
def test_the_pod_itself_is_refused_even_as_a_service_of_the_namespace(address: str) -> None:
    assert "operator's own pod" in (POD.why_not(url(address), "shop") or "")
    assert "operator's own pod" in (POD.why_not_at("http://tools.shop.svc/", address, "shop") or "")
    assert ANYWHERE.why_not(url(address), "shop") is None


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST.", "a.localhost"])
def test_localhost_is_the_pod_itself(host: str) -> None:
    assert "operator's own pod" in (POD.why_not(url(host), "shop") or "")
    assert ANYWHERE.why_not(url(host), "shop") is None


@pytest.mark.parametrize(
    "host",
    ["tools.shop", "tools.shop.svc", "tools.shop.svc.", "TOOLS.shop.SVC.cluster.local", "pod-0.tools.shop.svc.corp"],
)
def test_services_of_the_objects_own_namespace_are_reached(host: str) -> None:
    assert POD.why_not(url(host), "shop") is None
    assert POD.why_not_at(url(host), "10.0.0.1", "shop") is None


@pytest.mark.parametrize("host", ["tools.other.svc", "tools.other.svc.cluster.local", "kubernetes.default.svc"])
def test_services_of_other_namespaces_are_not(host: str) -> None:
    why = POD.why_not(url(host), "shop")
    assert why is not None and "not of shop" in why and f"--url-host {host}" in why


@pytest.mark.parametrize("host", ["tools", "tools.other", "10-0-0-1.shop.pod.cluster.local", "svc.shop", "shop.svc"])
def test_names_that_may_be_anybodys_are_judged_by_their_addresses(host: str) -> None:
    assert POD.why_not_at(url(host), "93.184.215.14", "shop") is None
    if host != "svc.shop":  # that is a Service called svc
        assert "not public" in (POD.why_not_at(url(host), "10.0.0.1", "shop") or "")


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
    assert rule.why_not(url(host), "shop") is None and rule.why_not_at(url(host), address, "shop") is None


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
    assert Destinations.of([opened], in_pod=True).why_not_at(url(host), address, "shop") is not None


@pytest.mark.parametrize("word", ["", "http://a.example", "a.example:80", "*", "a*.example", "user@a", "a b"])
def test_a_wrong_word_of_the_administrator_is_named(word: str) -> None:
    with pytest.raises(ValueError, match="is no host name, no address and no network"):
        Destinations.of([word], in_pod=True)


@given(st.ip_addresses())
def test_no_spelling_of_an_inner_address_gets_through(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    if not address.is_global:
        assert POD.why_not_at("https://harmless.example/", str(address), "shop") is not None
