"""Tests invalid objects: each reports object, field and remedy, and works once corrected.

Where the API server evaluates CEL it refuses some of these objects itself; then that refusal has to say as much.
"""

from typing import Any

import pytest

from integration.controllers.desk import Desk, eventually
from tarsy.kube.client import ApiError

LABEL = {"tarsy.dev/credentials": "true"}


async def refused(desk: Desk, kind: str, name: str, spec: dict[str, Any], type_: str = "Accepted") -> str:
    """Who refuses the object, the API server or the controller, with which words."""
    try:
        await desk.put(kind, name, spec)
    except ApiError as error:
        assert error.status == 422, error
        return error.message
    return await desk.reason(kind, name, type_, "False", "Invalid")


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"data": " \n"}, ("spec.data", "must not be empty", "put the text of the alert there")),
        ({"data": "ä" * 140_000}, ("spec.data", "262144 bytes", "dataFrom.configMapKeyRef")),
        ({}, ("spec", "exactly one of data", "dataFrom.configMapKeyRef")),
        (
            {"data": "x", "dataFrom": {"configMapKeyRef": {"name": "a", "key": "b"}}},
            ("spec", "exactly one of data", "dataFrom.configMapKeyRef"),
        ),
    ],
    ids=["empty", "too large", "neither", "both"],
)
async def test_alert_with_wrong_data_is_refused(desk: Desk, spec: dict[str, Any], words: tuple[str, ...]) -> None:
    await desk.configure()
    async with desk.controller():
        message = await refused(desk, "Alert", "bad", {"alertType": "PodCrash", **spec})
        assert all(word in message for word in words), message
        assert await desk.investigations() == []


async def test_invalid_alert_that_is_mended_is_investigated(desk: Desk) -> None:
    await desk.configure()
    async with desk.controller():
        try:
            await desk.alert("bad", data=" ")
        except ApiError:
            pytest.skip("this API server refuses it by itself")
        await desk.reason("Alert", "bad", "Accepted", "False", "Invalid")
        assert (await desk.conditions("Alert", "bad"))["Finished"][0] == "False"
        assert (await desk.get("Alert", "bad"))["status"]["phase"] == "Rejected"
        await desk.still("Alert", "bad")
        await desk.kube.patch("Alert", desk.namespace, "bad", {"spec": {"data": "now with text"}})
        await desk.reason("Alert", "bad", "Accepted", "True", "InvestigationCreated")


@pytest.mark.parametrize(
    ("stage", "words"),
    [
        ({"agents": []}, ("spec.stages", "agents")),
        ({"agents": [{"name": "one"}, {"name": "two"}], "replicas": 2}, ("replicas", "exactly one agent")),
    ],
    ids=["no agents", "replicas of several"],
)
async def test_chain_with_a_wrong_stage_is_not_ready(desk: Desk, stage: dict[str, Any], words: tuple[str, ...]) -> None:
    async with desk.controller():
        spec = {"alertTypes": ["PodCrash"], "stages": [{"name": "look", **stage}]}
        message = await refused(desk, "Chain", "bad", spec, "Ready")
        assert all(word in message for word in words), message


async def test_alert_of_an_unknown_type_waits_and_is_matched_when_its_chain_appears(desk: Desk) -> None:
    async with desk.controller():
        await desk.alert()
        message = await desk.reason("Alert", "crash", "Accepted", "False", "NoChain")
        assert "spec.alertType" in message and "PodCrash" in message and "create one" in message
        assert (await desk.get("Alert", "crash"))["status"]["phase"] == "Waiting"
        await desk.still("Alert", "crash")
        await desk.configure()
        name = (await desk.queued())["metadata"]["name"]
        await desk.reason("Investigation", name, "Accepted", "True", "Planned")
        await desk.reason("Alert", "crash", "Accepted", "True", "InvestigationCreated")


async def test_chain_says_all_that_it_lacks_at_once_and_is_ready_when_it_is_there(desk: Desk) -> None:
    async with desk.controller():
        spec = {
            "alertTypes": ["PodCrash"],
            "llmProvider": "one",
            "mcpServers": [{"name": "tools"}],
            "stages": [{"name": "look", "agents": [{"name": "one"}, {"name": "two"}]}],
        }
        await desk.put("Chain", "one", spec)
        message = await desk.reason("Chain", "one", "Ready", "False", "ReferencesInvalid")
        for word in (
            "spec.llmProvider: there is no LLMProvider one",
            "spec.mcpServers[0].name: there is no MCPServer tools",
            "spec.stages[0].agents[0].name: there is no Agent one",
            "spec.stages[0].agents[1].name: there is no Agent two",
            "create it",
        ):
            assert word in message, message
        await desk.alert()
        name = (await eventually(desk.investigations))[0]["metadata"]["name"]
        plan = await desk.reason("Investigation", name, "Accepted", "False", "PlanInvalid")
        chain = f"Chain {desk.namespace}/one: spec."
        for word in (f"{chain}llmProvider", f"{chain}stages[0].agents[0].name", f"{chain}stages[0].agents[1].name"):
            assert word in plan, plan
        await desk.put("LLMProvider", "one", {"type": "openai", "model": "m"})
        transport = {"type": "http", "http": {"url": "http://tools.example/mcp"}}
        await desk.put("MCPServer", "tools", {"transport": transport, "tools": {"readOnly": ["*"]}})
        await desk.put("Agent", "one", {})
        message = await desk.reason("Chain", "one", "Ready", "False", "ReferencesInvalid")

        async def only_one_left() -> bool:
            return "agents[1]" in (await desk.conditions("Chain", "one"))["Ready"][2].split(";")[0]

        await eventually(only_one_left)
        await desk.put("Agent", "two", {})
        await desk.reason("Chain", "one", "Ready", "True", "Usable")
        await desk.reason("Investigation", name, "Accepted", "True", "Planned")
        await desk.kube.delete("Agent", desk.namespace, "two")
        await desk.reason("Chain", "one", "Ready", "False", "ReferencesInvalid")


async def test_provider_tells_each_way_its_secret_can_be_wrong_and_is_ready_when_it_is_right(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tarsy.controllers.configuration.RECHECK_SECONDS", 0.2)
    monkeypatch.setattr("tarsy.controllers.configuration.SETTLED_RECHECK_SECONDS", 0.2)
    monkeypatch.setattr("tarsy.kube.credentials.CACHE_SECONDS", 0.1)
    async with desk.controller():
        spec = {"type": "openai", "model": "m", "apiKeySecretRef": {"name": "key", "key": "api-key"}}
        await desk.put("LLMProvider", "one", spec)
        secret = f"Secret {desk.namespace}/key"
        message = await desk.reason("LLMProvider", "one", "Ready", "False", "SecretMissing")
        assert message == f"spec.apiKeySecretRef: {secret} does not exist; create it"
        await desk.core("Secret", "key", {"stringData": {"other": "s3cr3t-value"}})
        message = await desk.reason("LLMProvider", "one", "Ready", "False", "SecretNotLabelled")
        assert secret in message and 'tarsy.dev/credentials: "true"; add it' in message
        await desk.kube.patch("Secret", desk.namespace, "key", {"metadata": {"labels": LABEL}})
        message = await desk.reason("LLMProvider", "one", "Ready", "False", "SecretKeyMissing")
        assert message == f"spec.apiKeySecretRef: {secret} has no key api-key; add it"
        await desk.kube.patch("Secret", desk.namespace, "key", {"stringData": {"api-key": "s3cr3t-value"}})
        await desk.reason("LLMProvider", "one", "Ready", "True", "Usable")
        await desk.kube.patch("Secret", desk.namespace, "key", {"stringData": {"api-key": "s3cr3t-rotated"}})
        await desk.still("LLMProvider", "one", 0.7)
        await desk.kube.delete("Secret", desk.namespace, "key")
        await desk.reason("LLMProvider", "one", "Ready", "False", "SecretMissing")
        assert "s3cr3t" not in str(await desk.get("LLMProvider", "one"))


async def test_alert_tells_each_way_its_config_map_can_be_wrong_and_runs_when_it_is_right(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tarsy.controllers.runs.acceptance.RECHECK_SECONDS", 0.2)
    monkeypatch.setattr("tarsy.controllers.runs.inputs.MAX_CONFIG_MAP_BYTES", 1000)
    await desk.configure()
    async with desk.controller():
        spec = {"alertType": "PodCrash", "dataFrom": {"configMapKeyRef": {"name": "body", "key": "alert"}}}
        await desk.put("Alert", "crash", spec)
        name = (await eventually(desk.investigations))[0]["metadata"]["name"]
        field = f"Alert {desk.namespace}/crash: spec.dataFrom.configMapKeyRef: ConfigMap {desk.namespace}/body"
        assert (
            await desk.reason("Investigation", name, "Accepted", "False", "ConfigMapMissing")
            == f"{field} does not exist; create it"
        )
        await desk.core("ConfigMap", "body", {"data": {"other": "x"}})
        message = await desk.reason("Investigation", name, "Accepted", "False", "ConfigMapKeyMissing")
        assert message == f"{field} has no key alert under data; add it"
        for text, reason in ((" ", "ConfigMapKeyEmpty"), ("x" * 1001, "ConfigMapTooLarge")):
            await desk.kube.patch("ConfigMap", desk.namespace, "body", {"data": {"alert": text}})
            assert field in await desk.reason("Investigation", name, "Accepted", "False", reason)
        await desk.kube.patch("ConfigMap", desk.namespace, "body", {"data": {"alert": "it crashed"}})
        await desk.reason("Investigation", name, "Accepted", "True", "Planned")
        assert (await desk.claim()).alert_data == "it crashed"


async def test_investigation_of_no_alert_or_of_another_of_its_name_waits_and_runs_when_it_comes(desk: Desk) -> None:
    await desk.configure()
    async with desk.controller():
        await desk.put("Investigation", "mine", {"alertRef": {"name": "later"}})
        message = await desk.reason("Investigation", "mine", "Accepted", "False", "AlertMissing")
        assert message == f"spec.alertRef.name: Alert {desk.namespace}/later does not exist; create it, or name another"
        wrong = {"name": "later", "uid": "00000000-0000-4000-8000-000000000000"}
        await desk.put("Investigation", "other", {"alertRef": wrong})
        await desk.alert("later")
        await desk.reason("Investigation", "mine", "Accepted", "True", "Planned")
        message = await desk.reason("Investigation", "other", "Accepted", "False", "AlertReplaced")
        assert "spec.alertRef.uid" in message and f"Alert {desk.namespace}/later" in message


async def test_investigation_of_an_invalid_alert_says_what_is_wrong_with_the_alert(desk: Desk) -> None:
    await desk.configure()
    async with desk.controller():
        try:
            await desk.alert("bad", data=" ")
        except ApiError:
            pytest.skip("this API server refuses it by itself")
        await desk.put("Investigation", "mine", {"alertRef": {"name": "bad"}})
        message = await desk.reason("Investigation", "mine", "Accepted", "False", "AlertInvalid")
        assert f"Alert {desk.namespace}/bad" in message and "spec.data: data must not be empty" in message
