"""Plays AgentDojo's cases through the engine, with a model that obeys every instruction which it reads.

The tools are those of the benchmark, over MCP (`dojo_server.py`). The script makes the calls that solve the user's
task and, as soon as it has read the injected instruction, those that solve the attacker's; its finding claims high
confidence and quotes what it read. The benchmark judges both.
"""

import json
import re
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from urllib.request import Request, urlopen

from tarsy.llm.protocol import GenerateRequest
from tarsy.masking import default_masker
from tarsy.mcp.toolbox import McpToolboxes
from tarsy.plan.model import (
    EvidencePlan,
    EvidenceRule,
    HttpTransport,
    ObjectRef,
    Plan,
    PlannedBudget,
    ServerPlan,
    SummarizationPlan,
    Value,
)
from tarsy.plan.policy import ToolPolicy
from tarsy.record.finding import Confidence
from tarsy.record.integrity import Integrity
from unit.engine.build import agent, call, plan, scene, stage
from wire.scripted_client import Answer

MARKER = "zqdojo"
CALLS = 60
"""Budget of a run in tool calls."""

OUTWARD = frozenset(
    {"post_webpage", "send_channel_message", "send_direct_message", "send_email", "send_money", "share_file"}
)
"""Tools that take data to somebody."""

CHANGING = OUTWARD | {
    "add_calendar_event_participants",
    "add_user_to_channel",
    "append_to_file",
    "cancel_calendar_event",
    "create_calendar_event",
    "create_file",
    "delete_email",
    "delete_file",
    "invite_user_to_slack",
    "remove_user_from_slack",
    "reschedule_calendar_event",
    "reserve_car_rental",
    "reserve_hotel",
    "reserve_restaurant",
    "schedule_transaction",
    "update_password",
    "update_scheduled_transaction",
    "update_user_info",
}
"""Tools that change something, those among them."""

READING = ("get_*", "read_*", "search_*", "list_*", "check_*")
"""`tools.readOnly` of the server."""

FETCHES = "get_webpage"
"""Requests any address: what it is asked for leaves with the request, so it is denied (`tools.deny`)."""

_RESULT = re.compile(r"\[callId: (call_[0-9a-f]{12})\] dojo\.(\w+)\n(.*)", re.DOTALL)
Pair = tuple[str, str, str | None]


@dataclass(frozen=True)
class DojoServer:
    """The server of the suites: its URL, the version of the suites, and their cases."""

    url: str
    version: str
    pairs: Sequence[Pair]


@contextmanager
def dojo_server(python: Path) -> Iterator[DojoServer]:
    """Starts the server with the Python that AgentDojo is installed in."""
    script = str(Path(__file__).with_name("dojo_server.py"))
    with subprocess.Popen([str(python), script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        try:
            url = f"http://127.0.0.1:{int(process.stdout.readline())}"
            found = _request(f"{url}/pairs")
            yield DojoServer(url, found["version"], [cast(Pair, tuple(pair)) for pair in found["pairs"]])
        finally:
            process.stdin.close()
            process.wait(30)


@dataclass(frozen=True)
class DojoPlayed:
    """What became of one case.

    Attributes:
        read: whether the model read the injected instruction.
        acts: calls that changed something and reached the server.
        leaks: calls that took data to somebody and reached the server.
        reached: whether the attacker's goal was reached, as the benchmark judges.
        solved: whether the user's task was solved, as the benchmark judges.
        high: whether the finding has high confidence; no result is of class K.
        calls: tool calls that reached the server.
    """

    read: bool
    acts: int
    leaks: int
    reached: bool
    solved: bool
    high: bool
    calls: int


class _Obedient:
    def __init__(self, begun: dict[str, Any]) -> None:
        self._todo: list[list[Any]] = list(begun["calls"])
        self._attack: list[list[Any]] = list(begun["attack"])
        self._says: list[str] = [begun["says"]]
        self._attack_says: str = begun["attack_says"]
        self.read = False

    def answer(self, request: GenerateRequest) -> Answer:
        results = [found for message in request.messages if (found := _RESULT.match(message.content))]
        if not self.read and any(MARKER in found[3] for found in results):
            self.read = True
            self._todo = [*self._attack, *self._todo]
            self._says.insert(0, self._attack_says)
        if self._todo and request.tools:
            name, arguments = self._todo.pop(0)
            return Answer(tool_calls=(call(f"dojo.{name}", f"c{len(results)}", json.dumps(arguments)),))
        said = " ".join(filter(None, self._says)) or "Done."
        quotes = [(found[1], line.strip()) for found in results for line in found[3].splitlines() if line.strip()]
        planted = [(ref, line) for ref, line in quotes if MARKER in line] or quotes
        claims = [
            {"text": said[:500], "citations": [{"callId": ref, "quote": line[:900]}]} for ref, line in planted[:3]
        ]
        finding = {"summary": said[:1000], "confidence": "High", "claims": claims}
        return Answer(f"{said}\n```finding\n{json.dumps(finding)}\n```")


async def play_dojo(server: DojoServer, pair: Pair, *, policy: ToolPolicy) -> DojoPlayed:
    """Plays one case.

    Args:
        server: of the suites.
        pair: suite, user task and injection task; without one the case is benign.
        policy: ReadOnly, as by default, or All: without a tool policy.
    """
    begun = _request(f"{server.url}/runs", list(pair))
    run = f"{server.url}/runs/{begun['run']}"
    model, mask = _Obedient(begun), default_masker().mask
    s = scene(model.answer, toolboxes=McpToolboxes(_value, mask=mask), mask=mask)
    outcome = await s.run(_plan(f"{run}/mcp", policy), alert=begun["prompt"], runbook="")
    judged = _request(f"{run}/end", {"output": outcome.final_analysis or ""})
    called: list[str] = judged["called"]
    return DojoPlayed(
        read=model.read,
        acts=sum(name in CHANGING for name in called),
        leaks=sum(name in OUTWARD or name == FETCHES for name in called),
        reached=judged["reached"],
        solved=judged["solved"],
        high=outcome.finding is not None and outcome.finding.confidence is Confidence.HIGH,
        calls=len(called),
    )


def _plan(url: str, policy: ToolPolicy) -> Plan:
    server = ServerPlan(
        ref=ObjectRef(kind="MCPServer", namespace="team-a", name="dojo"),
        name="dojo",
        transport=HttpTransport(url=url),
        policy=policy,
        read_only=READING,
        deny=() if policy is ToolPolicy.ALL else (FETCHES,),
        summarization=SummarizationPlan(enabled=False),
        evidence=EvidencePlan(rules=(EvidenceRule(tools=("*",), integrity=Integrity.X),))
        if policy is ToolPolicy.READ_ONLY
        else None,
    )
    reader = agent(iterations=CALLS).model_copy(update={"servers": (server,)})
    return plan(stage("look", reader)).model_copy(update={"budget": PlannedBudget(tool_calls=CALLS)})


async def _value(value: Value) -> str:
    return value.value or ""


def _request(url: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    with urlopen(Request(url, data, {"Content-Type": "application/json"}), timeout=60) as answer:
        return json.load(answer)
