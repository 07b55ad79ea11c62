"""Objects that name what is not there, or contradict themselves: each says what is wrong, where, and what to do."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from e2e.tenant import ANSWER, Tenant, condition
from e2e.waiting import until
from tarsy.kube.client import ApiError

SCRIPT = f"agents: {{agent: [{{text: {ANSWER}}}]}}"


async def message(tenant: Tenant, kind: str, name: str, what: str, *words: str) -> str:
    """The message of a condition that is False, once it has all these words."""

    async def look() -> Any:
        obj = await tenant.get(name, kind)
        text = condition(obj, what, "message")
        return text if condition(obj, what) == "False" and all(word in text for word in words) else None

    return str(await until(f"{kind} {name} is not {what} and says {words}", look, 120))


async def test_chain_says_all_that_is_missing_at_once_by_field(tenant: Tenant) -> None:
    stages = [{"name": "one", "agents": [{"name": "nobody"}, {"name": "agent", "llmProvider": "nowhere"}]}]
    await tenant.use_agent("agent", "nothing")
    await tenant.put("Chain", "chain", {"llmProvider": "absent", "stages": stages})
    await message(tenant, "Chain", "chain", "Ready", "spec.stages[0].agents[0].name", "nobody", "nowhere", "absent")
    await message(tenant, "Agent", "agent", "Ready", "spec.mcpServers[0].name", "nothing")


async def test_run_waits_with_all_reasons_and_starts_when_the_last_one_is_mended(tenant: Tenant) -> None:
    await tenant.use_agent("agent", "tools")
    await tenant.use_chain(["agent"])
    await tenant.investigate()
    await message(tenant, "Investigation", "run", "Accepted", "tools", "model")
    await tenant.use_model(SCRIPT)
    await message(tenant, "Investigation", "run", "Accepted", "tools")
    await tenant.use_tools()
    inv = await tenant.finished()
    assert condition(inv, "Succeeded") == "True", inv["status"]


async def test_run_of_a_chain_that_does_not_exist_waits_for_it(tenant: Tenant) -> None:
    await tenant.investigate(chain="later")
    await message(tenant, "Investigation", "run", "Accepted", "later")
    await tenant.simple(SCRIPT, name="later")
    assert condition(await tenant.finished(), "Succeeded") == "True"


async def test_two_chains_for_one_alert_type_are_an_error_that_names_both(tenant: Tenant) -> None:
    await tenant.simple(SCRIPT, alertTypes=[tenant.namespace])
    await tenant.use_chain(["agent"], name="rival", alertTypes=[tenant.namespace])
    await tenant.put("Alert", "torn", {"alertType": tenant.namespace, "data": "the disk is full"})
    await message(tenant, "Alert", "torn", "Accepted", "chain", "rival")


def _has_changed(messages: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a request holds the instructions as they were pushed."""
    return any("Changed instructions." in str(message["content"]) for message in messages)


async def test_git_push_in_the_middle_changes_the_next_run_and_not_this_one(tenant: Tenant) -> None:
    gated = f"agents: {{agent: [{{text: one, calls: [{{name: tools.look}}], gate: first}}, {{text: {ANSWER}}}]}}"
    model = await tenant.simple(gated)
    await tenant.investigate("before")
    await tenant.asked()
    await tenant.use_agent("agent", "tools", instructions="Changed instructions.")
    await tenant.noticed("Agent", "agent")
    await tenant.investigate("after")

    async def newer() -> bool:
        return any(_has_changed(request.messages) for request in model.journal.requests)

    await until("the next run has the change", newer)
    model.open_gate("first")
    for name in ("before", "after"):
        assert condition(await tenant.finished(name), "Succeeded") == "True"
    first = [r for r in model.journal.requests if r.turn == 1 and len(r.messages) > 1]
    assert sorted(_has_changed(request.messages) for request in first) == [False, True]


async def test_copy_from_a_backup_does_not_run_again(tenant: Tenant) -> None:
    model = await tenant.simple(SCRIPT)
    await tenant.investigate()
    inv = await tenant.finished()
    await tenant.client.delete("Investigation", tenant.namespace, "run")
    copy = {"annotations": inv["metadata"]["annotations"]}
    await tenant.put("Investigation", "copy", inv["spec"], **copy)
    restored = await tenant.finished("copy")
    assert condition(restored, "Finished", "reason") == "Restored"
    assert len(model.journal.requests) == 1


@pytest.mark.newer_api
@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"alertType": "x"}, "set exactly one of data"),
        ({"alertType": "x", "data": "  "}, "data must not be empty"),
        ({"alertType": "x", "data": "ä" * 200_000}, "256 KiB"),
    ],
)
async def test_bad_alert_is_refused_by_the_api_server(tenant: Tenant, spec: dict[str, Any], words: str) -> None:
    with pytest.raises(ApiError, match=words):
        await tenant.put("Alert", "bad", spec)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"alertType": "x"}, ("data", "dataFrom")),
        ({"alertType": "x", "data": "  "}, ("data", "empty")),
        ({"alertType": "x", "data": "ä" * 200_000}, ("data", "256 KiB", "ConfigMap")),
        ({"alertType": "x", "dataFrom": {"configMapKeyRef": {"name": "absent", "key": "data"}}}, ("absent",)),
    ],
    ids=["neither", "empty", "too-large", "absent-config-map"],
)
async def test_bad_alert_that_got_in_says_what_is_wrong(
    tenant: Tenant, spec: dict[str, Any], words: tuple[str, ...]
) -> None:
    if tenant.machine.api.supports_cel and "dataFrom" not in spec:
        pytest.skip("this API server refuses it: test_bad_alert_is_refused_by_the_api_server")
    await tenant.simple(SCRIPT, alertTypes=["x"])
    await tenant.put("Alert", "bad", spec)
    if "dataFrom" in spec:

        async def made() -> Any:
            return await tenant.client.list("Investigation", tenant.namespace)

        (inv,) = await until("the investigation is made", made)
        await message(tenant, "Investigation", inv["metadata"]["name"], "Accepted", *words)
    else:
        await message(tenant, "Alert", "bad", "Accepted", *words)
