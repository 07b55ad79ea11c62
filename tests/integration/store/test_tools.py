"""Tests pinned tools on Postgres, and the access and refusal of tool calls."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import uuid4

import asyncpg
import pytest

from integration.store.build import TOOLS, begun_run, claimed_run, model_call, tool_call, writer
from tarsy.record.boundaries import OfferedTools
from tarsy.record.messages import Access, ToolDefinition
from tarsy.store import columns

OLD, NEW = {"get": "1", "scale": "1"}, {"get": "2"}


async def test_another_run_has_lists_of_its_own(pool: asyncpg.Pool) -> None:
    (one, _), (two, _) = await claimed_run(pool), await claimed_run(pool)
    await writer(pool, one).pin_tools({"k": OLD}, OfferedTools(uuid4()))
    assert await writer(pool, two).pin_tools({"k": NEW}, OfferedTools(uuid4())) == {"k": NEW}
    await pool.execute("DELETE FROM investigation WHERE id = $1", one)
    assert await pool.fetchval("SELECT count(*) FROM tool_pin") == 1


async def test_agents_side_by_side_see_one_list(pool: asyncpg.Pool) -> None:
    run, _ = await claimed_run(pool)
    write = writer(pool, run)
    lists = [{"k": {"get": str(n)}, "m": {"get": str(n)}} for n in range(8)]
    found = await asyncio.gather(*(write.pin_tools(one, OfferedTools(uuid4())) for one in lists))
    assert all(each == found[0] for each in found) and found[0] in lists


async def test_tools_are_hashed_once_an_agent_and_again_when_they_have_changed(
    pool: asyncpg.Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed: list[int] = []
    hash_tools = columns.tool_set

    def counted(tools: Sequence[ToolDefinition]) -> tuple[list[dict[str, Any]], str]:
        hashed.append(len(tools))
        return hash_tools(tools)

    monkeypatch.setattr(columns, "tool_set", counted)
    _, _, write, agent = await begun_run(pool)
    more = (*TOOLS, replace(TOOLS[0], name="kubernetes.list"))
    await write.pin_tools({"k": OLD}, OfferedTools(agent.id, TOOLS))
    for number, tools in enumerate([TOOLS, list(TOOLS), more, more, TOOLS]):
        await write.model_call_started(replace(model_call(agent.id, number), tools=tools))
    assert hashed == [1, 2, 1]
    rows = await pool.fetch(
        "SELECT jsonb_array_length(t.definitions) AS tools FROM llm_interaction c "
        "JOIN tool_set t ON t.hash = c.tool_set ORDER BY c.number"
    )
    assert [row["tools"] for row in rows] == [1, 1, 2, 2, 1]


async def test_a_call_keeps_what_its_tool_does_and_why_it_was_refused(pool: asyncpg.Pool) -> None:
    _, _, write, agent = await begun_run(pool)
    await write.tool_call_started(replace(tool_call(agent.id), access=Access.DESTRUCTIVE))
    refused = replace(tool_call(agent.id, 4), made=False, refused="ToolPolicy")
    await write.tool_call_started(refused)
    rows = await pool.fetch("SELECT access, refused, made FROM mcp_interaction ORDER BY message_seq")
    assert [tuple(row) for row in rows] == [("destructive", None, True), ("unknown", "ToolPolicy", False)]
