"""A tool server is killed, at each moment it has: the investigation ends, and says what it lacks."""

import sys
from functools import partial
from typing import Any

from e2e.tenant import ANSWER, TOOL_SERVER, Tenant, condition
from e2e.waiting import until

MOMENTS = ("start", "open", "call", "idle", "close")
CALL = "{calls: [{name: %s.look, arguments: {what: df}}]}"


def script(*, calls: int) -> str:
    turns = {moment: [CALL % moment] * calls for moment in MOMENTS}
    agents = "".join(f"  {moment}: [{', '.join(turns[moment])}, {{text: {ANSWER}}}]\n" for moment in MOMENTS)
    return f"agents:\n{agents}"


async def run_all(tenant: Tenant, *, calls: int, stays_away: bool) -> dict[str, dict[str, Any]]:
    """An investigation for each moment at which its server is killed, side by side; all of them, finished."""
    await tenant.use_model(script(calls=calls))
    for moment in MOMENTS:
        folder = tenant.folder / moment
        folder.mkdir()
        env = {"COUNT_FILE": folder / "calls", "KILL_FILE": folder / "kill"}
        if stays_away:
            env["GONE_FILE"] = folder / "gone"
        stdio = {
            "command": sys.executable,
            "args": ["-S", str(TOOL_SERVER)],
            "env": [{"name": name, "value": str(value)} for name, value in env.items()],
        }
        transport = {"type": "stdio", "stdio": stdio}
        await tenant.put("MCPServer", moment, {"transport": transport, "toolPolicy": "All"})
        await tenant.use_agent(moment, moment)
        await tenant.use_chain([moment], name=moment)
    for moment in MOMENTS:
        await until(f"server {moment} was looked at, which is no part of this", partial(available, tenant, moment))
        (tenant.folder / moment / "kill").write_text(moment)
        await tenant.investigate(moment, chain=moment)
    return {moment: await tenant.finished(moment) for moment in MOMENTS}


async def available(tenant: Tenant, server: str) -> bool:
    return condition(await tenant.get(server, "MCPServer"), "Available") == "True"


async def test_a_killed_server_that_stays_away_degrades_the_evidence_and_never_the_run(tenant: Tenant) -> None:
    found = await run_all(tenant, calls=2, stays_away=True)
    assert not list(tenant.folder.glob("*/kill")), "each was killed"
    for moment, inv in found.items():
        assert condition(inv, "Succeeded") == "True", (moment, inv["status"])
        degraded = condition(inv, "EvidenceDegraded"), condition(inv, "EvidenceDegraded", "reason")
        if moment == "close":  # it had answered everything by then
            assert degraded == ("False", "AllServersAvailable"), moment
        else:
            assert degraded == ("True", "ToolServersMissing"), (moment, inv["status"])
            assert moment in condition(inv, "EvidenceDegraded", "message")


async def test_a_killed_server_that_can_be_opened_again_answers_the_next_call(tenant: Tenant) -> None:
    found = await run_all(tenant, calls=2, stays_away=False)
    for moment, inv in found.items():
        assert condition(inv, "Succeeded") == "True", (moment, inv["status"])
        missing = moment in ("start", "open")  # what could not be opened is missing for the whole agent
        assert condition(inv, "EvidenceDegraded") == str(missing), (moment, inv["status"])
    requests = [request for request in tenant.model.journal.requests if request.messages[-1]["role"] == "tool"]
    told = "\n".join(str(request.messages[-1]["content"]) for request in requests)
    assert "outcome is unknown" in told, "the call in which its server was killed was not made again"
    assert (tenant.folder / "call" / "calls").read_text().count("look") == 2
