"""Secrets that models write, into texts, thoughts, calls and findings: none of it is left anywhere."""

import json

import asyncpg
import pytest

from e2e.scenarios.brain import calls, finding, says
from e2e.scenarios.scene import Scene

SECRET = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
CONFIGURATION = """
kind: Agent
name: reader
spec: {strategy: %s, mcpServers: [{name: kubernetes}]}
---
kind: Chain
name: checkout
spec:
  alertTypes: [CheckoutDown]
  llmProvider: %s
  stages: [{name: look, agents: [{name: reader}]}]
"""
LOGS = calls("kubernetes.get_logs", pod=f"checkout-{SECRET}")
CONCLUSION = f"The token {SECRET} leaked." + finding(
    f"{SECRET} is in the log.", "Low", (f"It shows {SECRET}.", "kubernetes.get_logs", f"checkout-{SECRET}")
)
REACT = f"Thought: I use {SECRET}\nAction: kubernetes.get_logs\nAction Input: {LOGS.arguments}"


@pytest.mark.parametrize(
    ("strategy", "provider", "first"),
    [
        ("langchain", "scripted", says(f"I use {SECRET}", LOGS, thinking=f"{SECRET}!")),
        ("react", "scripted", says(REACT)),
        ("native-thinking", "thinker", says(f"{SECRET}", LOGS, provider_state={"parts": [SECRET]})),
    ],
)
async def test_no_secret_that_a_model_writes_is_left_in_postgres_or_in_an_object(
    scene: Scene, strategy: str, provider: str, first: object
) -> None:
    conclusion = f"Final Answer: {CONCLUSION}" if strategy == "react" else CONCLUSION
    answers = {"reader": [first, says(conclusion)], "executive-summary": [says(f"{SECRET} leaked.")]}
    async with scene.product(CONFIGURATION % (strategy, provider), answers):  # type: ignore[arg-type]
        await scene.alert("checkout-down", "checkout answers 502")
        run = await scene.run("checkout-down")
    assert run.record.outcome is not None and "[MASKED_GITHUB_TOKEN]" in (run.record.outcome.final_analysis or "")
    assert [e.tool_calls[0]["made"] for e in run.executions if e.tool_calls] == [True]
    assert await _places(scene.pool, SECRET) == []
    assert SECRET not in json.dumps(run.objects)


async def test_where_a_namespace_switches_it_off_what_models_say_is_kept_as_they_said_it(scene: Scene) -> None:
    off = "\n---\nkind: InvestigationDefaults\nname: default\nspec: {modelOutputMasking: {enabled: false}}\n"
    answers = {
        "reader": [says(f"I use {SECRET}", LOGS), says(f"{SECRET} leaked." + finding("A token leaked.", "Low"))],
        "executive-summary": [says("It leaked.")],
    }
    async with scene.product(CONFIGURATION % ("langchain", "scripted") + off, answers):
        await scene.alert("checkout-down", "checkout answers 502")
        run = await scene.run("checkout-down")
    assert run.record.outcome is not None and SECRET in (run.record.outcome.final_analysis or "")
    assert {"message", "timeline_event", "investigation", "execution"} <= set(await _places(scene.pool, SECRET))
    (call,) = run.executions[0].tool_calls
    assert SECRET not in call["arguments"] + call["result"], "those are masked as their server says"


async def _places(pool: asyncpg.Pool, text: str) -> list[str]:
    """The tables of the record that hold the text."""
    tables = [name for (name,) in await pool.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'tarsy'")]
    assert {"message", "timeline_event", "mcp_interaction", "llm_interaction", "investigation"} <= set(tables)
    return [table for table in tables if text in repr(await pool.fetch(f"TABLE {table}"))]
