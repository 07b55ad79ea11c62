"""Runbooks over HTTP: those that chains and defaults declare, and their texts."""

from typing import Any

from integration.http.site import Site, Visitor
from tarsy.plan.skills import text_digest
from tarsy.store.git_texts import GitText, GitTextStore

GIT = {"url": "https://git.example.com/a", "commit": "1" * 40, "path": "pods.md"}
LIST = {"verbs": ["list"], "apiGroups": ["tarsy.dev"], "resources": ["chains"]}


def chain(**spec: Any) -> dict[str, Any]:
    return {"stages": [{"name": "look", "agents": [{"name": "one"}]}], **spec}


async def test_runbooks_are_listed_with_their_sources(site: Site, administrator: Visitor, namespace: str) -> None:
    await site.put("Chain", namespace, "plain", chain())
    await site.put("Chain", namespace, "pods", chain(runbook={"git": GIT}))
    ref = {"configMapKeyRef": {"name": "texts", "key": "r.md"}}
    await site.put("InvestigationDefaults", namespace, "default", {"runbook": ref})

    body = (await administrator.get("/runbooks", namespace=namespace)).body

    pods, default = body["items"]
    assert (pods["kind"], pods["name"], pods["source"], pods["git"]) == ("Chain", "pods", "Git", GIT)
    assert (default["kind"], default["source"]) == ("InvestigationDefaults", "ConfigMap")
    assert default["configMap"] == "texts/r.md"
    reader = await site.visitor(namespace, "reader", here=[LIST])
    assert [one["kind"] for one in (await reader.get("/runbooks", namespace=namespace)).body["items"]] == ["Chain"]


async def test_the_text_of_a_runbook_comes_with_digest_and_commit(
    site: Site, administrator: Visitor, namespace: str
) -> None:
    await site.put("Chain", namespace, "pods", chain(runbook={"git": GIT}))
    await site.put("Chain", namespace, "inline", chain(runbook={"inline": "Call."}))
    await site.put("Chain", namespace, "plain", chain())
    await GitTextStore(site.services.pool).keep(*GIT.values(), GitText("Look.", text_digest("Look.")))

    found = (await administrator.get(f"/namespaces/{namespace}/chains/pods/runbook")).body
    inline = (await administrator.get(f"/namespaces/{namespace}/chains/inline/runbook")).body

    assert (found["text"], found["digest"], found["git"]) == ("Look.", text_digest("Look."), GIT)
    assert (inline["text"], inline["problem"]) == ("Call.", None)
    for name in ("plain", "missing"):
        assert (await administrator.get(f"/namespaces/{namespace}/chains/{name}/runbook")).status == 404
    ref = {"configMapKeyRef": {"name": "t", "key": "k"}}
    await site.put("InvestigationDefaults", namespace, "default", {"runbook": ref})
    path = f"/namespaces/{namespace}/investigationdefaults/default/runbook"
    assert f"ConfigMap {namespace}/t does not exist" in (await administrator.get(path)).body["problem"]
