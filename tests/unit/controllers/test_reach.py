"""Tests the condition of a Chain whose tools are bound to each run's namespace."""

from datetime import UTC, datetime
from typing import Any

import pytest

from tarsy.controllers.machinery.cache import Cache
from tarsy.controllers.readiness.reach import sentence, with_reach
from tarsy.resources.meta import API_VERSION, condition
from tarsy.resources.v1alpha1 import Chain
from tarsy.resources.v1alpha1.common import ConditionType, ConfigStatus

LIBRARY = "tarsy-library"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
OPEN = {"from": "All"}
TRUSTED = {"from": "Selector", "selector": {"matchLabels": {"trusted": "yes"}}}
HTTP = {"type": "http", "http": {"url": "http://x/mcp"}}


def cluster(chain: dict[str, Any] | None = None, server: dict[str, Any] | None = None) -> tuple[Chain, Cache]:
    cache = Cache()
    for name, labels in (("shop", {"trusted": "yes"}), ("pay", {}), (LIBRARY, {})):
        cache.set_namespace(name, labels)

    def put(kind: str, name: str, spec: dict[str, Any], namespace: str = LIBRARY) -> None:
        meta = {"name": name, "namespace": namespace, "uid": f"{kind}-{namespace}-{name}", "resourceVersion": "1"}
        cache.put({"apiVersion": API_VERSION, "kind": kind, "metadata": meta, "spec": spec})

    put("MCPServer", "kube", {"transport": HTTP, "toolPolicy": "All", **(server or {})})
    put("Agent", "look", {"mcpServers": [{"name": "kube"}]})
    stages = [{"name": "one", "agents": [{"name": "look"}]}]
    put("Chain", "kubernetes", {"stages": stages, "allowedNamespaces": OPEN, **(chain or {})})
    put("InvestigationDefaults", "default", {"llmProvider": "own"}, "shop")
    put("InvestigationDefaults", "default", {"maxIterations": 3}, "pay")
    put("InvestigationDefaults", "default", {"llmProvider": "default"})
    found = cache.get(Chain, LIBRARY, "kubernetes")
    assert found is not None
    return found, cache


def said(chain: dict[str, Any] | None = None, server: dict[str, Any] | None = None) -> str | None:
    return sentence(*cluster(chain, server))


def test_a_chain_open_to_all_names_its_server_and_both_remedies() -> None:
    text = said()
    assert text is not None
    assert f"Runs of all other namespaces reach only their own namespace through MCPServer {LIBRARY}/kube" in text
    assert "select them in its spec.reach.unboundNamespaces" in text
    assert "InvestigationDefaults of namespace shop name are not used" in text
    assert "spec.allowedProviderNamespaces" in text


def test_namespaces_that_are_selected_are_named() -> None:
    text = said({"allowedNamespaces": TRUSTED})
    assert text is not None and "Runs of namespace shop reach only" in text


def test_those_that_are_granted_more_are_not_named() -> None:
    text = said(server={"reach": {"unboundNamespaces": TRUSTED}})
    assert text is not None and "Runs of namespace pay reach only" in text and "tarsy-library reach" not in text
    text = said(server={"reach": {"unboundNamespaces": OPEN}})
    assert text is not None and "reach only" not in text and "not used" in text
    granted = {"allowedProviderNamespaces": TRUSTED}
    assert said(granted, {"reach": {"unboundNamespaces": OPEN}}) is None


@pytest.mark.parametrize(
    ("chain", "server"),
    [
        ({"allowedNamespaces": None}, None),
        ({"allowedNamespaces": {"from": "None"}}, None),
        (None, {"transport": {"type": "stdio", "stdio": {"command": "x", "kubeconfig": True}}}),
    ],
    ids=["its own", "said so", "acts as the run's account"],
)
def test_a_chain_that_lends_no_rights_has_no_such_condition(
    chain: dict[str, Any] | None, server: dict[str, Any] | None
) -> None:
    assert said(chain, server) is None


def test_the_condition_comes_and_goes() -> None:
    chain, cache = cluster()
    status = with_reach(ConfigStatus(), chain, cache, NOW)
    found = condition(status.conditions, ConditionType.REACH_BOUND)
    assert found is not None and (found.status, found.reason) == ("True", "RunNamespaceOnly")
    closed, cache = cluster({"allowedNamespaces": None})
    assert with_reach(status, closed, cache, NOW).conditions == ()


def test_a_long_list_of_namespaces_is_cut() -> None:
    chain, cache = cluster({"allowedNamespaces": TRUSTED})
    for number in range(20):
        cache.set_namespace(f"n{number:02}", {"trusted": "yes"})
    text = sentence(chain, cache)
    assert text is not None and "n09 and 11 more reach only" in text
