"""Tests objects that cannot run: they are given up after their time, report it, and expire."""

from integration.controllers.desk import Desk, eventually
from tarsy.kube.client import ApiError


async def test_a_run_with_an_unknown_server_ends_as_not_accepted_and_its_alert_tells(desk: Desk) -> None:
    await desk.configure()
    await desk.put("InvestigationDefaults", "default", {"acceptanceTimeoutSeconds": 2})
    async with desk.controller():
        await desk.alert(mcpServers=[{"name": "nowhere"}])
        name = (await eventually(desk.investigations))[0]["metadata"]["name"]
        message = await desk.reason("Investigation", name, "Finished", "True", "NotAccepted")
        assert "spec.mcpServers[0].name: there is no MCPServer nowhere" in message
        found = await desk.conditions("Investigation", name)
        assert found["Accepted"][:2] == ("False", "PlanInvalid") and found["Succeeded"][:2] == ("False", "NotAccepted")
        assert "no MCPServer nowhere" in await desk.reason("Alert", "crash", "Succeeded", "False", "NotAccepted")
        await desk.reason("Alert", "crash", "Finished", "True", "InvestigationFinished")
        await desk.told(("Investigation", "NotAccepted"))
        # What would be right now comes too late, and nothing is written any more.
        transport = {"type": "http", "http": {"url": "http://tools.example/mcp"}}
        await desk.put("MCPServer", "nowhere", {"transport": transport, "tools": {"readOnly": ["*"]}})
        await desk.still("Investigation", name, 1.0)
        await desk.still("Alert", "crash", 0.1)
        patch = {"spec": {"ttlSecondsAfterFinished": 0}}
        await desk.kube.patch("Investigation", desk.namespace, name, patch)

        async def gone() -> bool:
            try:
                await desk.get("Investigation", name)
            except ApiError as error:
                assert error.reason == "NotFound"
                return True
            return False

        await eventually(gone)


async def test_an_alert_still_waits_for_a_chain_when_a_run_would_have_been_given_up(desk: Desk) -> None:
    await desk.put("InvestigationDefaults", "default", {"acceptanceTimeoutSeconds": 1})
    async with desk.controller():
        await desk.alert()
        await desk.reason("Alert", "crash", "Accepted", "False", "NoChain")
        alone = {"alert": {"alertType": "PodCrash", "data": "x"}, "acceptanceTimeoutSeconds": 2}
        await desk.put("Investigation", "alone", alone)
        assert "NoChain" in await desk.reason("Investigation", "alone", "Finished", "True", "NotAccepted")
        assert (await desk.conditions("Alert", "crash"))["Finished"][:2] == ("False", "NotFinished")
        await desk.configure()
        await desk.reason("Alert", "crash", "Accepted", "True", "InvestigationCreated")


async def test_a_question_about_an_investigation_that_never_comes_ends_as_not_accepted(desk: Desk) -> None:
    await desk.put("InvestigationDefaults", "default", {"acceptanceTimeoutSeconds": 2})
    async with desk.controller():
        await desk.ask("why", "nowhere")
        await desk.reason("ChatMessage", "why", "Accepted", "False", "InvestigationMissing")
        message = await desk.reason("ChatMessage", "why", "Finished", "True", "NotAccepted")
        assert "Investigation" in message and "does not exist; create it, or name another" in message
        assert (await desk.conditions("ChatMessage", "why"))["Succeeded"][:2] == ("False", "NotAccepted")
        await desk.told(("ChatMessage", "NotAccepted"))
        await desk.still("ChatMessage", "why", 0.8)
