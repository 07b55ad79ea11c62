"""Gemini's own answers, thought signatures included, as the next call sends them back: from the record alone."""

import pytest

from extras import needs
from integration.llm.asking import GET, QUESTION, collect, results, turn
from integration.llm.google import SIGNATURES, Make, asked
from tarsy.llm.google_native.provider import GoogleNativeProvider
from tarsy.llm.protocol import Chunk, GenerateRequest
from tarsy.record.messages import Message, Role, ToolCall
from wire import gemini
from wire.server import StandIn

pytestmark = needs("google.genai")


async def signed(server: StandIn, client: GoogleNativeProvider) -> list[Chunk]:
    """An answer with two calls, the first signed and without an id, and a signature of its own at the end."""
    server.answers = [
        gemini.stream(
            gemini.piece(gemini.thought("Two pods.")),
            gemini.piece(gemini.text("I ")),
            gemini.piece(gemini.text("look.\u0000")),
            gemini.piece(gemini.call("kubernetes__get", {"a": "x"}, signature=SIGNATURES[0])),
            gemini.piece(gemini.call("kubernetes__get", {"a": None}, id="own")),
            gemini.last(gemini.text("", SIGNATURES[1])),
        )
    ]
    return await collect(client)


async def test_the_next_process_sends_the_answer_back_part_by_part(server: StandIn, gemini_client: Make) -> None:
    message = turn(await signed(server, gemini_client()), content="I look.")
    sent = await asked(server, gemini_client(), GenerateRequest([*QUESTION, message, *results(message)], [GET]))
    assert gemini.signatures(sent) == SIGNATURES
    user, model, tools = sent["contents"]
    assert user == {"role": "user", "parts": [{"text": "why?"}]}
    assert model["role"] == "model"
    assert [list(part) for part in model["parts"]] == [
        ["text", "thought"],
        ["text"],
        ["functionCall", "thoughtSignature"],
        ["functionCall"],
        ["text", "thoughtSignature"],
    ]
    assert model["parts"][2]["functionCall"] == {"name": "kubernetes__get", "args": {"a": "x"}}
    assert model["parts"][3]["functionCall"] == {"id": "own", "name": "kubernetes__get", "args": {"a": None}}
    first, second = message.tool_calls
    assert tools["parts"] == [
        {"functionResponse": {"name": "kubernetes__get", "response": {"output": f"found {first.id}"}}},
        {"functionResponse": {"id": "own", "name": "kubernetes__get", "response": {"output": f"found {second.id}"}}},
    ]


async def test_what_googles_own_tools_did_goes_back_too(server: StandIn, gemini_client: Make) -> None:
    search = {"toolCall": {"id": "t1", "toolType": "GOOGLE_SEARCH_WEB", "args": {"queries": ["q"]}}}
    found = {"toolResponse": {"id": "t1", "toolType": "GOOGLE_SEARCH_WEB", "response": {"pages": "A"}}}
    server.answers = [gemini.stream(gemini.piece(search | {"thoughtSignature": "AAEC"}), gemini.last(found))]
    message = turn(await collect(gemini_client()))
    sent = await asked(
        server, gemini_client(), GenerateRequest([*QUESTION, message, Message(Role.USER, "and?")], [GET])
    )
    call, response = sent["contents"][1]["parts"]
    assert (call["toolCall"]["args"], response["toolResponse"]["response"]) == ({"queries": ["q"]}, {"pages": "A"})
    assert gemini.signatures(sent) == [b"\x00\x01\x02"]


async def test_calls_that_were_not_taken_are_not_sent_back(server: StandIn, gemini_client: Make) -> None:
    message = turn(await signed(server, gemini_client()), content="I look.", tool_calls=())
    sent = await asked(server, gemini_client(), GenerateRequest([*QUESTION, message, Message(Role.USER, "conclude")]))
    assert not [part for content in sent["contents"] for part in content["parts"] if "functionCall" in part]
    assert gemini.signatures(sent) == SIGNATURES[1:]


async def test_text_that_was_shortened_is_sent_as_it_is_now(server: StandIn, gemini_client: Make) -> None:
    message = turn(await signed(server, gemini_client()), content="short")
    sent = await asked(server, gemini_client(), GenerateRequest([*QUESTION, message, *results(message)], [GET]))
    parts = sent["contents"][1]["parts"]
    assert [part["text"] for part in parts if "text" in part] == ["short"]
    assert gemini.signatures(sent) == SIGNATURES[:1]


@pytest.mark.parametrize(("model", "marked"), [("gemini-3-flash", True), ("gemini-2.5-pro", False)])
async def test_another_models_turn_is_written_anew(
    server: StandIn, gemini_client: Make, model: str, marked: bool
) -> None:
    mine = turn(await signed(server, gemini_client()), content="I look.")
    foreign = Message(
        Role.ASSISTANT, "Hm.", (ToolCall("c9", "kubernetes.get", "{oops"),), provider_state={"openai": {"x": 1}}
    )
    conversation = [*QUESTION, mine, *results(mine), foreign, *results(foreign)]
    sent = await asked(server, gemini_client(model), GenerateRequest(conversation, [GET]))
    assert gemini.signatures(sent) == [b"skip_thought_signature_validator"] * (2 if marked else 0)
    _, one, _, other, result = sent["contents"]
    assert [list(part) for part in one["parts"]][1:] == [
        ["functionCall", "thoughtSignature"] if marked else ["functionCall"],
        ["functionCall"],
    ]
    assert other["parts"][1]["functionCall"]["args"] == {"malformed_arguments": "{oops"}
    assert result["parts"][0]["functionResponse"]["id"] == "c9"
