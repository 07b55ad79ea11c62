"""Tests the plan of an alert that is not submitted: what it tells, and to whom."""

from integration.http.site import Site

CREATE = [{"apiGroups": ["tarsy.dev"], "resources": ["alerts"], "verbs": ["create"]}]
USE = [*CREATE, {"apiGroups": ["tarsy.dev"], "resources": ["chains"], "verbs": ["use"]}]
PROVIDER = {"type": "openai", "model": "small", "apiKeySecretRef": {"name": "key", "key": "key"}}
AGENT = {"instructions": "Look at the pods.", "strategy": "react"}
CHAIN = {
    "alertTypes": ["DiskFull"],
    "llmProvider": "local",
    "stages": [{"name": "look", "agents": [{"name": "kubernetes-agent"}]}],
}


async def configured(site: Site, namespace: str, **chain: object) -> None:
    await site.put("LLMProvider", namespace, "local", PROVIDER)
    await site.put("Agent", namespace, "kubernetes-agent", AGENT)
    await site.put("Chain", namespace, "disks", {**CHAIN, **chain})


async def test_the_plan_names_chain_stages_agents_and_models(site: Site, namespace: str) -> None:
    await configured(site, namespace)
    person = await site.visitor(namespace, "ada", here=USE)
    answer = await person.post(f"/namespaces/{namespace}/plan", {"alertType": "DiskFull"})
    assert answer.status == 200, answer.body
    plan = answer.body
    assert (plan["chain"], plan["chainNamespace"], plan["errors"]) == ("disks", namespace, [])
    (stage,) = plan["stages"]
    (agent,) = stage["agents"]
    assert (stage["name"], agent["strategy"], agent["provider"], agent["model"]) == ("look", "react", "local", "small")
    assert "Look at the pods." not in str(plan) and "apiKey" not in str(plan)


async def test_an_alert_without_a_chain_would_wait(site: Site, namespace: str) -> None:
    person = await site.visitor(namespace, "ada", here=USE)
    answer = await person.post(f"/namespaces/{namespace}/plan", {"alertType": "DiskFull"})
    assert answer.status == 200 and answer.body["chain"] is None
    (error,) = answer.body["errors"]
    assert "DiskFull" in error


async def test_errors_of_the_configuration_are_all_told(site: Site, namespace: str) -> None:
    await configured(site, namespace, llmProvider="none")
    person = await site.visitor(namespace, "ada", here=USE)
    answer = await person.post(f"/namespaces/{namespace}/plan", {"alertType": "DiskFull"})
    assert answer.status == 200 and answer.body["chain"] == "disks"
    assert any("none" in error for error in answer.body["errors"])


async def test_who_may_not_use_the_chain_is_refused(site: Site, namespace: str) -> None:
    await configured(site, namespace)
    person = await site.visitor(namespace, "eve", here=CREATE)
    answer = await person.post(f"/namespaces/{namespace}/plan", {"alertType": "DiskFull"})
    assert answer.status == 403
    assert f"may not use Chain {namespace}/disks" in answer.message
