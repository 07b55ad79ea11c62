"""Native thinking: signatures go back with the message they came with; what native tools did is on record."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from e2e.scenarios.brain import calls, finding, says
from e2e.scenarios.played import Played, check_goldens
from e2e.scenarios.scene import Scene
from tarsy.llm.protocol import CodeExecutionChunk, GroundingChunk, GroundingKind, GroundingSource

CONFIGURATION = """
kind: Agent
name: researcher
spec:
  instructions: You look for what is publicly known.
  strategy: native-thinking
  nativeTools: {googleSearch: true, codeExecution: true}
---
kind: Agent
name: collector
spec: {strategy: native-thinking, mcpServers: [{name: kubernetes}]}
---
kind: Chain
name: checkout
spec:
  alertTypes: [CheckoutDown]
  llmProvider: thinker
  executiveSummary: {enabled: false}
  stages:
  - {name: research, agents: [{name: researcher}]}
  - {name: collect, agents: [{name: collector}]}
"""

FIRST, SECOND = {"signature": "c2lnLTE="}, {"signature": "c2lnLTI="}
SEARCH = GroundingChunk(
    GroundingKind.SEARCH,
    ("postgres connection refused",),
    (GroundingSource("PostgreSQL documentation", "https://postgres.example"),),
)
ANSWERS = {
    "researcher": [
        says(
            "A refused connection means that nothing listens on the port.",
            thinking="This is a general question.",
            native=(SEARCH, CodeExecutionChunk("print(5432)", "5432", "python")),
        )
    ],
    "collector": [
        says("", calls("kubernetes.list_pods", namespace="shop"), thinking="Pods first.", provider_state=FIRST),
        says(
            "The pod crashes; its log will say why.",
            calls("kubernetes.get_logs", pod="checkout-5d4f", lines=1),
            thinking="Now the log.",
            provider_state=SECOND,
        ),
        says(
            "Its database refuses connections."
            + finding(
                "checkout's database refuses connections.",
                "High",
                ("The connection is refused.", "kubernetes.get_logs", "5432: connection refused"),
            ),
            thinking="That is it.",
        ),
    ],
}


@asynccontextmanager
async def played(scene: Scene) -> AsyncIterator[Mapping[str, Played]]:
    async with scene.product(CONFIGURATION, ANSWERS):
        await scene.alert("checkout-down", "Checkout answers 502 in namespace shop.")
        yield {"native-thinking": Played("checkout-down", await scene.run("checkout-down"))}


async def test_signatures_are_replayed_and_native_tools_told(scene: Scene) -> None:
    run = (await check_goldens(played, scene))["native-thinking"].run
    last = run.execution("1-collector").model_calls[-1].request
    assert [m.provider_state for m in last.messages if m.role == "assistant"] == [FIRST, SECOND]
