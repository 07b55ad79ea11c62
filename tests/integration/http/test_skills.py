"""Skills over HTTP: the list, and texts for those who may read where they are."""

import pytest

from integration.http.site import Site, Visitor
from integration.http.test_configuration import READY
from tarsy.plan.skills import text_digest
from tarsy.store.git_texts import GitText, GitTextStore
from tarsy_dev.objects import put

LIST = {"verbs": ["list"], "apiGroups": ["tarsy.dev"], "resources": ["skills"]}
REF = {"name": "texts", "key": "pods.md"}


async def test_skills_are_listed_without_their_texts(site: Site, administrator: Visitor, namespace: str) -> None:
    rule = {"alertTypes": ["PodCrash"], "workloadLabels": {"app": "web"}}
    spec = {"description": "Explains pods.", "body": "Read the log.", "appliesTo": rule, "allowedTools": ["k.get"]}
    await site.put("Skill", namespace, "pods", spec, conditions=READY, digest="a" * 64, sizeBytes=13)
    await site.put("Skill", namespace, "nodes", {"description": "Explains nodes.", "configMapKeyRef": REF})

    body = (await administrator.get("/skills", namespace=namespace)).body

    nodes, pods = body["items"]
    assert (pods["source"], pods["ready"], pods["digest"], pods["sizeBytes"]) == ("Inline", True, "a" * 64, 13)
    assert (pods["appliesTo"], pods["allowedTools"]) == ("type PodCrash; labels app=web", ["k.get"])
    assert (nodes["source"], nodes["ready"], nodes["digest"], nodes["appliesTo"]) == ("ConfigMap", None, None, "")
    assert "Read the log." not in str(body)


async def test_the_text_of_a_skill_comes_with_its_digest(site: Site, administrator: Visitor, namespace: str) -> None:
    await site.put("Skill", namespace, "pods", {"description": "d", "body": "Read the log."})

    body = (await administrator.get(f"/namespaces/{namespace}/skills/pods/text")).body

    assert (body["text"], body["digest"], body["problem"]) == ("Read the log.", text_digest("Read the log."), None)
    assert (await administrator.get(f"/namespaces/{namespace}/skills/none/text")).status == 404


async def test_a_text_in_a_config_map_is_for_those_who_may_read_the_config_map(
    site: Site, administrator: Visitor, namespace: str
) -> None:
    await site.put("Skill", namespace, "pods", {"description": "d", "configMapKeyRef": REF})
    path = f"/namespaces/{namespace}/skills/pods/text"
    body = (await administrator.get(path)).body
    assert body["text"] is None and f"ConfigMap {namespace}/texts does not exist; create it" in body["problem"]
    metadata = {"name": "texts", "namespace": namespace}
    data = {"pods.md": "Read the log."}
    await put(site.services.kube, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
    assert (await administrator.get(path)).body["text"] == "Read the log."
    text = {"verbs": ["get"], "apiGroups": ["record.tarsy.dev"], "resources": ["skills/text"]}
    reader = await site.visitor(namespace, "reader", here=[text])
    body = (await reader.get(path)).body
    assert body["text"] is None and f"may not get ConfigMap {namespace}/texts" in body["problem"]
    stranger = await site.visitor(namespace, "stranger", here=[LIST])
    assert (await stranger.get(path)).status == 403


async def test_a_text_from_git_comes_with_its_commit(site: Site, administrator: Visitor, namespace: str) -> None:
    git = {"url": "https://git.example.com/a", "commit": "1" * 40, "path": "pods.md"}
    await site.put("Skill", namespace, "pods", {"description": "d", "git": git})
    path = f"/namespaces/{namespace}/skills/pods/text"
    assert (
        "pods.md of commit 111111111111 has not been read by a run yet"
        in (await administrator.get(path)).body["problem"]
    )

    await GitTextStore(site.services.pool).keep(*git.values(), GitText("Read the log.", text_digest("Read the log.")))

    body = (await administrator.get(path)).body
    assert (body["text"], body["git"], body["source"]) == ("Read the log.", git, "Git")


@pytest.mark.parametrize("kept", [1, 2])
async def test_texts_from_git_that_were_used_last_are_kept(site: Site, kept: int) -> None:
    store = GitTextStore(site.services.pool, kept)
    for path in ("a", "b"):
        await store.keep("https://git.example.com/a", "1" * 40, path, GitText(path, "d"))

    found = [await store.find("https://git.example.com/a", "1" * 40, path) for path in ("a", "b")]

    assert [one is not None for one in found] == [kept == 2, True]
