"""`tarsy ask`: one streamed answer, on the server and with the key that the LLMProvider names."""

import asyncio
import os
import sys
from pathlib import Path

import pytest
import yaml

from tarsy.cli.objects.ask import summary
from tarsy.plan.model import ObjectRef, PlannedRates, ProviderPlan
from tarsy.record.usage import Usage
from wire import openai
from wire.server import StandIn

KEY = "sk-0123456789abcdefSECRET"


async def ask(folder: Path, spec: dict[str, object], *arguments: str, key: str | None = KEY) -> tuple[int, str, str]:
    """Runs `tarsy ask --file`; exit status, the answer, and all else."""
    file = folder / "provider.yaml"
    meta = {"name": "house-model"}
    file.write_text(
        yaml.safe_dump({"apiVersion": "tarsy.dev/v1alpha1", "kind": "LLMProvider", "metadata": meta, "spec": spec})
    )
    env = {k: os.environ[k] for k in ("PATH", "HOME") if k in os.environ} | (
        {"TARSY_MODEL_API_KEY": key} if key else {}
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "tarsy.cli", "ask", "--file", str(file), *arguments, "why?"),
        env=env,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(60):
            out, err = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return process.returncode or 0, out.decode(), err.decode()


process_of_its_own = pytest.mark.heavy("a process of its own; another answer and another refusal are beside it")


def spec(server: StandIn, **fields: object) -> dict[str, object]:
    reference = {"name": "house-key", "key": "api-key"}
    return {"type": "openai", "model": "gpt-x", "baseURL": server.base_url, "apiKeySecretRef": reference, **fields}


async def test_the_answer_stands_alone_and_thinking_usage_and_cost_beside_it(server: StandIn, tmp_path: Path) -> None:
    server.answers = [
        openai.stream(
            openai.delta(reasoning_content="hm, "),
            openai.delta(content="The disk "),
            openai.delta(content="is full."),
            openai.delta("stop"),
            openai.usage(prompt_tokens=1000, completion_tokens=500),
        )
    ]
    rates = {"inputPerMillion": 1, "outputPerMillion": 2}
    status, answer, beside = await ask(tmp_path, spec(server, rates=rates))
    assert (status, answer) == (0, "The disk is full.\n"), beside
    assert "hm, " in beside
    assert "1,000 tokens in" in beside
    assert "$0.002" in beside
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"
    assert server.requests[0]["messages"] == [{"role": "user", "content": "why?"}]


async def test_a_refused_key_is_one_sentence_without_the_key(server: StandIn, tmp_path: Path) -> None:
    server.answers = [openai.fail(401, {"message": f"wrong key {KEY}"})]
    status, answer, beside = await ask(tmp_path, spec(server))
    assert (status, answer) == (1, "")
    assert "CredentialsRejected" in beside
    assert KEY not in beside
    assert "Traceback" not in beside


@process_of_its_own
async def test_without_a_key_it_says_where_to_put_it(server: StandIn, tmp_path: Path) -> None:
    status, _, beside = await ask(tmp_path, spec(server), key=None)
    assert status == 1
    assert "TARSY_MODEL_API_KEY" in beside


@process_of_its_own
async def test_a_provider_or_a_file_must_be_given_and_not_both(server: StandIn, tmp_path: Path) -> None:
    status, _, beside = await ask(tmp_path, spec(server), "--provider", "x")
    assert status == 2
    assert "either --provider or --file" in beside


def test_what_is_not_known_of_an_answer_is_said_to_be_unknown() -> None:
    ref = ObjectRef(kind="LLMProvider", namespace="a", name="b")
    provider = ProviderPlan(
        ref=ref, type="openai", model="m", rates=PlannedRates(input=1, output=1, as_of="2026-11-04")
    )
    assert summary(provider, None) == "m, usage unknown, cost unknown"
    assert summary(provider, Usage(input_tokens=10)).endswith("$0.00001 at list prices of 2026-11-04")


@process_of_its_own
async def test_an_answer_that_repeats_itself_is_cut(server: StandIn, tmp_path: Path) -> None:
    server.answers = [openai.stream(*(openai.delta(content="i" * 100) for _ in range(50)), hang=True)]
    status, answer, beside = await ask(tmp_path, spec(server))
    assert status == 1 and "the model repeated itself" in beside
    assert answer.startswith("iii"), "what came is shown, and the server is not waited for"


@process_of_its_own
async def test_an_answer_cut_by_length_says_so(server: StandIn, tmp_path: Path) -> None:
    server.answers = [openai.stream(openai.delta(content="The disk is"), openai.delta("length"))]
    status, answer, beside = await ask(tmp_path, spec(server))
    assert (status, answer) == (0, "The disk is\n")
    assert "reached its output limit (spec.maxOutputTokens)" in " ".join(beside.split())


@process_of_its_own
async def test_a_server_that_is_silent_is_given_up_and_the_limit_is_named(server: StandIn, tmp_path: Path) -> None:
    server.answers = [openai.stream(hang=True)]
    status, _, beside = await ask(tmp_path, spec(server, timeouts={"firstTokenSeconds": 1}))
    assert status == 1 and "1 s (spec.timeouts.firstTokenSeconds of LLMProvider house-model" in beside
    server.answers = [openai.stream(hang=True)]
    status, _, beside = await ask(tmp_path, spec(server), "--timeout", "1")
    assert status == 1 and "1 s" in beside and "Traceback" not in beside
