"""Questions about investigations: two that are answered with tools, one that is cancelled, one that takes too long."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from e2e.scenarios.brain import Gate, calls, finding, says
from e2e.scenarios.played import Played, check_goldens
from e2e.scenarios.scene import Scene

CONFIGURATION = """
kind: Agent
name: collector
spec: {mcpServers: [{name: kubernetes}]}
---
kind: Agent
name: colleague
spec: {instructions: Answer in two sentences., mcpServers: [{name: kubernetes}, {name: network}]}
---
kind: Chain
name: answers
spec:
  llmProvider: scripted
  stages:
  - {name: collect, agents: [{name: collector}]}
  executiveSummary: {enabled: false}
  chat: {agent: colleague, maxIterations: 3}
---
kind: Agent
name: thinker
spec: {mcpServers: [{name: kubernetes}]}
---
kind: Chain
name: waits
spec:
  llmProvider: scripted
  stages:
  - {name: collect, agents: [{name: collector}]}
  executiveSummary: {enabled: false}
  chat: {agent: thinker}
---
kind: Agent
name: dreamer
spec: {instructions: Think well.}
---
kind: Chain
name: hurries
spec:
  llmProvider: scripted
  stages:
  - {name: collect, agents: [{name: collector}]}
  executiveSummary: {enabled: false}
  chat: {agent: dreamer, timeoutSeconds: 15}
"""


@asynccontextmanager
async def played(scene: Scene) -> AsyncIterator[Mapping[str, Played]]:
    thinks, never = Gate(), Gate()
    pods = calls("kubernetes.list_pods", namespace="shop")
    crashes = finding(
        "The checkout pod crashes.", "High", ("It restarts again and again.", "kubernetes.list_pods", "restarts=7")
    )
    answers = {
        "collector": [says("I look at the pods.", pods), says(f"The pod checkout-5d4f crashes.{crashes}")],
        "colleague": [
            says(
                "I look at what it logs.",
                calls("kubernetes.get_logs", pod="checkout-5d4f", lines=1),
                calls("network.probe", host="ledger-db.pay", port=5432),
            ),
            says("It cannot reach its database. Somebody has to look at ledger-db."),
        ],
        "thinker": [says("I look again.", pods), says("Never said.", wait=thinks)],
        "dreamer": [says("Never said.", wait=never)],
    }
    async with scene.product(CONFIGURATION, answers):
        runs = {}
        for chain in ("answers", "waits", "hurries"):
            await scene.alert(chain, "Checkout answers 502.", chainRef={"name": chain})
            runs[chain] = await scene.run(chain)
        await scene.ask("hurries", "too-long", "What shall we do?")
        await scene.ask("waits", "cancelled", "Is it still so?")
        await scene.reached(thinks)
        await scene.want_answer("cancelled", "Cancelled")
        await scene.ask("answers", "first", "Why does it crash?")
        first = await scene.answer("first", runs["answers"])
        await scene.ask("answers", "second", "And who can help?")
        second = await scene.answer("second", runs["answers"], first)
        cancelled = await scene.answer("cancelled", runs["waits"])
        too_long = await scene.answer("too-long", runs["hurries"])
        yield {
            "chat-first": Played("answers", first),
            "chat-second": Played("answers", second),
            "chat-cancelled": Played("waits", cancelled),
            "chat-timeout": Played("hurries", too_long),
        }


async def test_questions_are_answered_cancelled_and_given_up_on_record(scene: Scene) -> None:
    await check_goldens(played, scene)
