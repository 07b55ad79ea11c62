"""Tests that every result of a tool server is masked, or withheld."""

from typing import Any

import pytest
from mcp_types import CallToolResult, TextContent

from tarsy.masking import MOST_ON_LOOP, Maskers, MaskingFailed, default_masker
from tarsy.mcp.tool_catalog import Offer
from tarsy.mcp.toolbox import McpToolbox, McpToolboxes
from tarsy.plan.model import HttpTransport, MaskingPlan, ObjectRef, ServerPlan, Value
from tarsy.record.messages import ToolDefinition, ToolOutcome

NAME = "kubernetes"


class Server:
    """An open server with one tool, which answers with a text and redacts nothing."""

    away = None
    instructions = ""
    offer = Offer((ToolDefinition(f"{NAME}.get", "Gets.", {"type": "object"}),))
    plan = ServerPlan(
        ref=ObjectRef(kind="MCPServer", namespace="team-a", name=NAME),
        name=NAME,
        transport=HttpTransport(url="http://127.0.0.1:1/mcp"),
    )

    def __init__(self, text: str) -> None:
        self.text = text

    def redact(self, text: str) -> str:
        return text

    def has_changed(self, tool: str) -> bool:
        return False

    async def live(self) -> "Server":
        return self

    async def call(self, tool: str, arguments: object, *, idempotency_key: str) -> CallToolResult:
        return CallToolResult(content=[TextContent(type="text", text=self.text)])


async def answer_of(text: str, *masks: Any) -> ToolOutcome:
    """What an agent gets of a server that answers with `text`."""
    servers: Any = {NAME: Server(text)}
    return await McpToolbox(servers, {}, *masks).call(f"{NAME}.get", "{}", timeout=60, idempotency_key="1")


@pytest.mark.parametrize("size", [0, MOST_ON_LOOP, 4 * MOST_ON_LOOP + 2])
async def test_secrets_are_taken_out_of_answers_of_any_size(size: int) -> None:
    answer = await answer_of("x " * (size // 2) + "\npassword: hunter22-and-more\n", default_masker().mask)
    assert "hunter22" not in answer.content and "[MASKED_PASSWORD]" in answer.content
    assert not answer.is_error


async def test_answer_that_cannot_be_masked_is_withheld_and_says_so() -> None:
    answer = await answer_of("password: hunter22", _broken)
    assert answer.is_error and "withheld" in answer.content and "hunter22" not in answer.content


async def test_a_server_with_masking_of_its_own_gets_that() -> None:
    own = {NAME: Maskers().of(MaskingPlan(enabled=False))}
    answer = await answer_of("password: hunter22", default_masker().mask, own)
    assert answer.content == "password: hunter22"


async def test_a_server_whose_masking_cannot_be_used_is_not_opened_and_says_so() -> None:
    async def resolve(value: Value) -> str:
        raise AssertionError("it is opened")

    plan = ServerPlan(
        ref=ObjectRef(kind="MCPServer", namespace="team-a", name="kubernetes"),
        name="kubernetes",
        transport=HttpTransport(url="http://127.0.0.1:1/mcp", headers=(Value(name="x", value="y"),)),
        masking=MaskingPlan(groups=("nosuch",)),
    )
    async with McpToolboxes(resolve, mask=str, mask_of=Maskers().of).open([plan]) as box:
        assert not box.tools
        assert "no pattern group 'nosuch'" in box.unavailable["kubernetes"]


def _broken(text: str) -> str:
    raise MaskingFailed("too slow")


def test_why_a_server_is_missing_and_what_servers_say_of_themselves_is_masked() -> None:
    told = Server("")
    told.instructions, told.offer = "log in with password: hunter22", Offer()
    servers, missing = {NAME: told}, {"wiki": "refused https://bob:hunter22@wiki.example"}
    box = McpToolbox(servers, missing, default_masker().mask)  # type: ignore[arg-type]
    assert box.instructions == {"kubernetes": "log in with password: [MASKED_PASSWORD]"}
    assert box.unavailable == {"wiki": "refused https://bob:[MASKED_PASSWORD]@wiki.example"}
    withheld = McpToolbox(servers, missing, _broken)  # type: ignore[arg-type]
    assert "hunter22" not in f"{withheld.instructions}{withheld.unavailable}"
    assert "withheld" in withheld.instructions["kubernetes"] and "withheld" in withheld.unavailable["wiki"]


def test_arguments_are_shown_as_the_masking_of_their_server_says() -> None:
    masks = {"kubernetes": Maskers().of(MaskingPlan(enabled=False)), "vault": _broken}
    box = McpToolbox({}, {}, default_masker().mask, masks)
    arguments = '{"password": "hunter22"}'
    assert box.shown("wiki.find", arguments) == '{"password": "[MASKED_PASSWORD]"}'
    assert box.shown("nosuch", arguments) == '{"password": "[MASKED_PASSWORD]"}'
    assert box.shown("kubernetes.get", arguments) == box.shown("kubernetes__get", arguments) == arguments
    assert "withheld" in box.shown("vault.read", arguments) and "hunter22" not in box.shown("vault.read", arguments)
