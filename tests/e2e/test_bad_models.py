"""Model servers that refuse, stumble or fall silent: the run ends, says why and which provider, and never the key."""

from typing import Any

import pytest

from e2e.tenant import ANSWER, KEY, Tenant, condition
from e2e.waiting import until

EVERY_ROW = """
SELECT query_to_xml(format('SELECT * FROM tarsy.%I', tablename), true, true, '')::text AS rows
FROM pg_tables WHERE schemaname = 'tarsy'
"""


def script(entry: str) -> str:
    return f"agents: {{agent: {{repeat: last, entries: [{entry}]}}}}"


async def ended(tenant: Tenant, identity: Any) -> dict[str, Any]:
    """The finished Investigation, after a look for the key in log, status, Events and every row of the record."""
    inv = await tenant.finished()
    events = await tenant.reads.timeline(identity)
    _, described = await tenant.kubectl("describe", "inv", "run")
    everywhere = f"{inv}{events}{described}{await tenant.record(identity)}"
    told = await tenant.client.list("Event", tenant.namespace)
    rows = await tenant.rows(EVERY_ROW)
    assert told and len(rows) > 10, "there is something to look at"
    everywhere += f"{told}{''.join(row['rows'] for row in rows)}"
    everywhere += tenant.machine.log.read_text(errors="replace")
    assert KEY not in everywhere
    assert "sk-other" not in everywhere
    return inv


@pytest.mark.parametrize(
    ("entry", "words", "requests"),
    [
        ("{error: {status: 401, message: 'Incorrect API key provided: " + KEY + "'}}", "401", 1),
        ("{error: {status: 500, message: out of order}}", "500", 6),  # three tries, twice
        ("{text: one two three four, cut: {after: 2}}", "middle of the response", 2),
    ],
    ids=["401", "500", "half-a-stream"],
)
async def test_failure_names_the_provider_and_why(tenant: Tenant, entry: str, words: str, requests: int) -> None:
    model = await tenant.simple(script(entry))
    identity = await tenant.investigate()
    inv = await ended(tenant, identity)
    error = inv["status"]["lastError"]
    assert condition(inv, "Succeeded") == "False"
    assert "provider model" in error["message"], error
    assert words in error["message"], error
    assert len(model.journal.requests) == requests


async def test_server_that_wants_another_key_is_a_failure_of_credentials(tenant: Tenant) -> None:
    await tenant.use_model(script(f"{{text: {ANSWER}}}"), key="sk-other-key")
    await tenant.use_agent("agent")
    await tenant.use_chain(["agent"])
    identity = await tenant.investigate()
    inv = await ended(tenant, identity)
    assert "provider model" in inv["status"]["lastError"]["message"]
    assert "401" in inv["status"]["lastError"]["message"]


async def test_rate_limited_server_is_asked_again_when_it_says(tenant: Tenant) -> None:
    error = "{status: 429, message: slow down, times: 1, headers: {Retry-After: '1'}}"
    model = await tenant.simple(script(f"{{text: {ANSWER}, error: {error}}}"))
    identity = await tenant.investigate()
    inv = await ended(tenant, identity)
    assert condition(inv, "Succeeded") == "True", inv["status"]
    first, second = model.journal.requests
    assert first.status == 429
    assert second.received - first.received >= 1


async def test_server_that_stumbles_twice_is_asked_a_third_time(tenant: Tenant) -> None:
    model = await tenant.simple(script(f"{{text: {ANSWER}, error: {{status: 500, times: 2}}}}"))
    identity = await tenant.investigate()
    inv = await ended(tenant, identity)
    assert condition(inv, "Succeeded") == "True", inv["status"]
    assert len(model.journal.requests) == 3


async def test_silent_server_ends_the_run_in_time(tenant: Tenant) -> None:
    await tenant.simple(script("{hang: true}"), timeouts={"firstTokenSeconds": 1})
    identity = await tenant.investigate()
    inv = await ended(tenant, identity)
    assert inv["status"]["phase"] == "TimedOut"
    assert "provider model" in inv["status"]["lastError"]["message"]
    assert "1 s" in inv["status"]["lastError"]["message"]


async def test_missing_secret_is_named_with_its_remedy_on_provider_and_run(tenant: Tenant) -> None:
    reference = {"name": "absent", "key": "api-key"}
    spec = {"type": "openai", "model": "scripted", "baseURL": "http://127.0.0.1:9/v1", "apiKeySecretRef": reference}
    await tenant.put("LLMProvider", "model", spec)
    await tenant.use_agent("agent")
    await tenant.use_chain(["agent"])
    identity = await tenant.investigate()
    inv = await ended(tenant, identity)
    remedy = f"Secret {tenant.namespace}/absent does not exist; create it"
    assert condition(inv, "Succeeded") == "False"
    assert remedy in inv["status"]["lastError"]["message"], inv["status"]["lastError"]

    async def told() -> Any:
        provider = await tenant.get("model", "LLMProvider")
        return provider if condition(provider, "Ready", "reason") == "SecretMissing" else None

    assert remedy in condition(await until("the provider says so", told), "Ready", "message")
