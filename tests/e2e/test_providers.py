"""Models of a tenant: whether they can be used, what they cost, and the next one where one fails."""

import json
from typing import Any

from e2e.tenant import ANSWER, KEY, Tenant, condition
from e2e.test_commands import tarsy
from e2e.waiting import until

SCRIPT = f"agents: {{agent: {{repeat: last, entries: [{{text: {ANSWER}}}]}}}}"


async def ready(tenant: Tenant, name: str, status: str, reason: str) -> str:
    """Waits until the LLMProvider is so; the message it gives."""

    async def look() -> str | None:
        found = await tenant.get(name, "LLMProvider")
        if not (found.get("status") or {}).get("conditions"):
            return None
        so = (condition(found, "Ready"), condition(found, "Ready", "reason")) == (status, reason)
        return condition(found, "Ready", "message") if so else None

    message: str = await until(f"LLMProvider {name} is Ready={status}, {reason}", look)
    return message


async def test_a_provider_is_ready_when_its_server_knows_key_and_model(tenant: Tenant) -> None:
    model = await tenant.use_model(SCRIPT)
    await ready(tenant, "model", "True", "Usable")
    assert model.journal.requests == []  # no token was spent


async def test_a_wrong_key_and_a_wrong_model_are_told_before_any_run(tenant: Tenant) -> None:
    await tenant.use_model(SCRIPT, key="sk-other-key")
    message = await ready(tenant, "model", "False", "CredentialsRejected")
    assert "401" in message
    assert "sk-other" not in message
    await tenant.use_model(SCRIPT, name="second")
    spec = (await tenant.get("second", "LLMProvider"))["spec"]
    await tenant.put("LLMProvider", "third", {**spec, "model": "absent"})
    assert "does not contain absent" in await ready(tenant, "third", "False", "ModelNotFound")


async def test_a_run_whose_first_provider_fails_ends_on_the_second_and_tells_it(tenant: Tenant) -> None:
    await tenant.use_model("agents: {agent: {repeat: last, entries: [{error: {status: 401, message: go away}}]}}")
    second = await tenant.use_model(SCRIPT, name="second")
    await tenant.use_agent("agent")
    await tenant.use_chain(["agent"], fallback=[{"llmProvider": "second"}])
    identity = await tenant.investigate()
    inv = await tenant.finished()
    assert condition(inv, "Succeeded") == "True", inv["status"]
    assert len(second.journal.requests) == 1
    (told,) = [e for e in await tenant.reads.timeline(identity) if e.type.value == "provider_fallback"]
    assert told.metadata["reason"] == "CredentialsRejected"
    assert (told.metadata["from"], told.metadata["to"]) == ("model", "second")

    async def told_of_it() -> list[dict[str, Any]]:
        return [e for e in await tenant.client.list("Event", tenant.namespace) if e["reason"] == "ProviderFallback"]

    events = await until("an Event tells of the change", told_of_it)
    assert [(e["type"], e["involvedObject"]["name"]) for e in events] == [("Warning", "run")]
    assert "Provider model failed" in events[0]["message"]
    assert "continues with provider second" in events[0]["message"]
    status, shown = await tarsy(tenant, "timeline", "run", "-n", tenant.namespace)
    assert (status, "continues with provider second" in shown) == (0, True), shown


async def test_usage_sums_what_the_runs_of_a_namespace_used(tenant: Tenant) -> None:
    await tenant.simple(SCRIPT)
    await tenant.investigate()
    await tenant.finished()
    status, output = await tarsy(tenant, "usage", "--since", "1h", "--by", "namespace", "-o", "json")
    assert status == 0, output
    (found,) = [item for item in json.loads(output)["items"] if item["name"] == tenant.namespace]
    assert found["calls"] == 1
    assert found["inputTokens"] > 0
    assert (found["costUSD"], found["callsOfUnknownCost"]) == (None, 1)
    status, output = await tarsy(tenant, "usage", "--since", "yesterday")
    assert (status, "such as 7d" in output) == (2, True), output


async def test_ask_uses_the_object_and_the_secret_of_the_cluster(tenant: Tenant) -> None:
    await tenant.use_model(f"sequential: [{{text: {ANSWER}}}]")
    where = ("-n", tenant.namespace, "--kubeconfig", str(tenant.machine.api.kubeconfig))
    status, output = await tarsy(tenant, "ask", "--provider", "model", *where, "why?")
    assert status == 0, output
    assert "The disk of node-1 is full." in output
    assert "cost unknown" in output
    assert KEY not in output
    status, output = await tarsy(tenant, "ask", "--provider", "absent", *where, "why?")
    assert (status, f"there is no LLMProvider {tenant.namespace}/absent" in output) == (1, True), output
