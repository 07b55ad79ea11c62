"""The brain of a scenario's models: scripts by agent, short words to write them, and gates to hold them at.

Decision: ids of calls exist only in a run, so a script writes `@callId(server.tool)` and the brain puts in what the
request shows, as the model of `tarsy dev` does.
"""

import asyncio
import hashlib
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

from tarsy.llm.protocol import GenerateRequest, LLMClient
from tarsy.plan.model import ProviderPlan
from tarsy.record.messages import ToolCall
from tarsy.record.usage import Usage
from tarsy_dev.model.conversation import with_call_ids
from wire.scripted_client import Answer, ByAgent, ScriptedClient


class Gate(asyncio.Event):
    """Holds whoever comes to it until it is set; `reached` once somebody has come."""

    def __init__(self) -> None:
        super().__init__()
        self.reached = asyncio.Event()

    async def wait(self) -> Literal[True]:
        """Notes the arrival, and waits."""
        self.reached.set()
        return await super().wait()


class Turnstile(asyncio.Event):
    """Lets one through for each `admit`; `arrived` is acquired once for each that has come."""

    def __init__(self) -> None:
        super().__init__()
        self.arrived = asyncio.Semaphore(0)
        self._admitted = asyncio.Semaphore(0)

    def admit(self) -> None:
        """Lets one through."""
        self._admitted.release()

    async def wait(self) -> Literal[True]:
        """Notes the arrival, and waits to be let through."""
        self.arrived.release()
        await self._admitted.acquire()
        return True


def calls(tool: str, **arguments: Any) -> ToolCall:
    """A call of `server.tool`, with an id as a provider would give it."""
    text = json.dumps(arguments)
    return ToolCall(f"fc_{hashlib.sha256((tool + text).encode()).hexdigest()[:8]}", tool, text)


def says(text: str, *tool_calls: ToolCall, tokens: tuple[int, int] = (1000, 100), **more: Any) -> Answer:
    """An answer; `tokens` are those of input and output, `more` is what else an `Answer` has."""
    usage = more.pop("usage", Usage(input_tokens=tokens[0], output_tokens=tokens[1]))
    return Answer(text=text, tool_calls=tool_calls, usage=usage, **more)


def finding(summary: str, confidence: str, *claims: tuple[str, str, str]) -> str:
    """The block at the end of a final answer; a claim is its text, the tool whose last result it cites, the quote."""
    body = {
        "summary": summary,
        "confidence": confidence,
        "claims": [
            {"text": text, "citations": [{"callId": f"@callId({tool})", "quote": quote}]}
            for text, tool, quote in claims
        ],
    }
    return f"\n\n```finding\n{json.dumps(body, indent=1)}\n```"


class Brain:
    """Answers every model call of a scenario, and keeps what was asked.

    Args:
        answers: by the agent's name in the timeline, or by NAME@PROVIDER; each execution gets them from the first on.
    """

    def __init__(self, answers: Mapping[str, Sequence[Answer]]) -> None:
        self._names = answers.keys()
        self._script = ByAgent(answers)
        self._requests: list[GenerateRequest] = []

    def client(self, provider: ProviderPlan, _key: str | None) -> LLMClient:
        """The client for any provider (`tarsy.llm.registry.Build`)."""
        return ScriptedClient(partial(self._answer, provider.ref.name))

    @property
    def requests(self) -> dict[str, list[GenerateRequest]]:
        """All requests of each execution, in order."""
        found: defaultdict[str, list[GenerateRequest]] = defaultdict(list)
        for request in self._requests:
            found[request.execution].append(request)
        return dict(found)

    def _answer(self, provider: str, request: GenerateRequest) -> Answer:
        self._requests.append(request)
        name = f"{request.agent}@{provider}"
        answer = self._script(replace(request, agent=name) if name in self._names else request)
        return replace(answer, text=with_call_ids(answer.text, [{"content": m.content} for m in request.messages]))
