"""Asks a model one question, to test an LLMProvider by hand (`tarsy ask`).

With a cluster it uses the object and its Secret as a run would, with the permissions of the caller's kubeconfig, which
must include reading the Secret. Without one the key comes from `TARSY_MODEL_API_KEY`, which no cluster install reads.
Standard output contains only the answer; thinking, tools of the provider, retries and usage go to standard error. An
answer that repeats itself is cut as in a run, and calls have the limits of a run.
"""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from pathlib import Path
from typing import assert_never

from rich.console import Console
from rich.text import Text

from tarsy.cli.console import new_console
from tarsy.cli.errors import AskError
from tarsy.cli.plans import files as plan_files
from tarsy.controllers.readiness.provider_checks import provider_plan_of
from tarsy.engine.limits.budget import cost
from tarsy.engine.limits.timing import timeouts
from tarsy.engine.model_calls.clock import CallClock
from tarsy.engine.model_calls.repetition import RepeatedText
from tarsy.kube.client import KubeClient
from tarsy.kube.credentials import Secrets
from tarsy.llm.protocol import (
    ActivityChunk,
    Chunk,
    CodeExecutionChunk,
    EndChunk,
    GenerateRequest,
    GroundingChunk,
    LifeChunk,
    ModelError,
    NoticeChunk,
    RetryChunk,
    TextChunk,
    ThinkingChunk,
    ToolCallChunk,
    UsageChunk,
    WaitChunk,
)
from tarsy.llm.registry import ModelRegistry, SecretProblem
from tarsy.plan.model import AgentLimits, CallTimeouts, ProviderPlan, SecretKey
from tarsy.record.messages import Message, Role
from tarsy.record.text import clean
from tarsy.record.usage import Usage
from tarsy.resources.parse import InvalidResource, parse_as
from tarsy.resources.v1alpha1.llm_provider import LLMProvider

KEY_VARIABLE = "TARSY_MODEL_API_KEY"


async def ask_cluster(
    question: str,
    name: str,
    namespace: str,
    kubeconfig: str | Path | None,
    context: str | None,
    *,
    seconds: float | None = None,
) -> int:
    """Asks the model of a cluster's LLMProvider; returns the exit status.

    Args:
        question: the prompt, sent unchanged.
        name: of the LLMProvider.
        namespace: of the LLMProvider.
        kubeconfig: the kubeconfig file; None: the default.
        context: the context of the kubeconfig; None: the current one.
        seconds: maximum seconds of the answer; None: `spec.timeouts`.

    Raises:
        AskError: there is no such LLMProvider, it is invalid, or the model gave no answer.
        ApiError: the Kubernetes API refused or could not be reached.
    """
    async with await KubeClient.load(kubeconfig, context) as client:
        found = await client.find("LLMProvider", namespace, name)
        if found is None:
            raise AskError(f"there is no LLMProvider {namespace}/{name}; see `kubectl get llmp -A`, and give -n")
        try:
            provider = parse_as(LLMProvider, found)
        except InvalidResource as invalid:
            raise AskError(f"LLMProvider {namespace}/{name} cannot be used: {invalid}") from None
        return await _ask(question, provider_plan_of(provider), Secrets(client), seconds=seconds)


async def ask_file(question: str, file: Path, *, provider_namespace: str, seconds: float | None = None) -> int:
    """Asks the model of the only LLMProvider in a file; returns the exit status.

    Args:
        question: the prompt, sent unchanged.
        file: the file with the LLMProvider.
        provider_namespace: the namespace of an LLMProvider without one.
        seconds: maximum seconds of the answer; None: `spec.timeouts`.

    Raises:
        AskError: the file holds no usable LLMProvider, or the model gave no answer.
    """
    manifests = plan_files.read_files([file], provider_namespace)
    if manifests.problems:
        raise AskError("; ".join(str(problem) for problem in manifests.problems))
    providers = [obj for obj in manifests.objects.values() if isinstance(obj, LLMProvider)]
    if len(providers) != 1:
        raise AskError(f"{file} holds {len(providers)} LLMProviders; name a file with exactly one")
    return await _ask(question, provider_plan_of(providers[0]), _from_environment, seconds=seconds)


async def _ask(
    question: str,
    provider: ProviderPlan,
    secrets: Callable[[SecretKey], Awaitable[str]],
    *,
    seconds: float | None = None,
    out: Console | None = None,
    beside: Console | None = None,
) -> int:
    """Streams an answer.

    Args:
        question: the prompt, sent unchanged.
        provider: the LLMProvider.
        secrets: reads its API key.
        seconds: maximum seconds of each wait and of the whole answer; None: `spec.timeouts`.
        out: the console for the answer.
        beside: the console for everything else.

    Raises:
        AskError: the model gave no answer.
    """
    out, beside = out or new_console(), beside or new_console(sys.stderr)
    models = ModelRegistry(secrets)
    request = GenerateRequest(messages=[Message(Role.USER, question)], execution="tarsy-ask", agent="ask")
    waits = timeouts(provider, AgentLimits())
    if seconds is not None:
        waits = CallTimeouts(silence=seconds, first_token=seconds, stall=seconds, call=seconds, iteration=seconds)
    try:
        async with asyncio.timeout(waits.call), models.client(provider) as client:
            usage = await _show(client.generate(request), CallClock(provider, waits), out, beside)
    except TimeoutError:
        why = "spec.timeouts.callSeconds of the LLMProvider, or --timeout" if seconds is None else "--timeout"
        raise AskError(f"the answer took longer than {waits.call:g} s ({why})") from None
    except ModelError as error:
        words = f"; it said: {clean(error.words)}" if error.words not in error.message else ""
        raise AskError(f"{clean(error.message)}{words} ({error.code.value})") from None
    finally:
        await models.aclose()
    beside.print(Text(summary(provider, usage), style="dim"))
    return 0


def summary(provider: ProviderPlan, usage: Usage | None) -> str:
    """Returns the model, and the known usage and cost of the answer."""
    told = [provider.model]
    if usage is None or not usage.complete:
        told.append("usage unknown")
    else:
        told.append(f"{usage.input_tokens:,} tokens in ({usage.cached_tokens:,} cached)")
        told.append(f"{usage.output_tokens:,} out ({usage.thinking_tokens:,} thinking)")
    dollars = cost(usage, provider.rates)
    if dollars is None:
        told.append("cost unknown")
    else:
        as_of = provider.rates.as_of if provider.rates else None
        told.append(f"${dollars.normalize():f}" + (f" at list prices of {as_of}" if as_of else ""))
    return ", ".join(told)


async def _show(chunks: AsyncGenerator[Chunk, None], clock: CallClock, out: Console, beside: Console) -> Usage | None:
    """Prints an answer as it streams, until it ends or repeats itself.

    Raises:
        AskError: the model repeated itself.
        ModelError: the call failed, a limit of the provider included.
    """
    usage: Usage | None = None
    text_repeats, thinking_repeats = RepeatedText(), RepeatedText()
    repeats: int | None = None
    thought = ended = False
    async with aclosing(_timed(chunks, clock)) as stream:
        async for chunk in stream:
            if thought and not isinstance(chunk, ThinkingChunk):
                beside.print()
                thought = False
            match chunk:
                case TextChunk(text):
                    out.print(Text(clean(text)), end="", soft_wrap=True)
                    ended = text.endswith("\n")
                    repeats = text_repeats.add(text)
                case ThinkingChunk(text):
                    thought = True
                    beside.print(Text(clean(text), style="dim"), end="", soft_wrap=True)
                    repeats = thinking_repeats.add(text)
                case CodeExecutionChunk(code, output, _):
                    beside.print(Text(f"[code]\n{clean(code)}\n{clean(output)}", style="dim"))
                case GroundingChunk(_, queries, sources):
                    pages = ", ".join(source.url for source in sources)
                    beside.print(Text(f"[{'; '.join(clean(q) for q in queries)}] {clean(pages)}", style="dim"))
                case ToolCallChunk(call):
                    beside.print(Text(f"[calls the tool {clean(call.name)}, which was not offered]", style="dim"))
                case RetryChunk(error, seconds):
                    beside.print(Text(f"{clean(error.message)}; retrying in {seconds:.1f} s", style="yellow"))
                case NoticeChunk(_, text):
                    beside.print(Text(clean(text), style="yellow"))
                case UsageChunk(found):
                    usage = found
                case EndChunk(reason) if reason == "length":
                    text = "The answer was cut off: the model reached its output limit (spec.maxOutputTokens)."
                    beside.print(Text(f"\n{text}", style="yellow"))
                case EndChunk() | ActivityChunk() | WaitChunk() | LifeChunk():
                    pass
                case _:
                    assert_never(chunk)
            if repeats is not None:
                break
    if not ended:
        out.print()
    if repeats is not None or text_repeats.end() is not None:
        raise AskError("the model repeated itself, so the answer was cut; try another model or question")
    return usage


async def _timed(chunks: AsyncGenerator[Chunk, None], clock: CallClock) -> AsyncGenerator[Chunk, None]:
    """Yields the chunks; raises ModelError when the next one does not arrive in time."""
    due = clock.begin()
    async with aclosing(chunks) as stream:
        while True:
            try:
                async with asyncio.timeout(due) as limit:
                    chunk = await anext(stream, None)
            except TimeoutError:
                if not limit.expired():
                    raise
                raise clock.idle_error() from None
            match chunk:
                case None:
                    return
                case RetryChunk(_, seconds):
                    due = clock.begin(seconds)
                case LifeChunk() | NoticeChunk() | WaitChunk():
                    due = clock.alive()
                case _:
                    due = clock.answering()
            yield chunk


async def _from_environment(key: SecretKey) -> str:
    value = os.environ.get(KEY_VARIABLE, "")
    if not value:
        raise SecretProblem("KeyMissing", f"there is no cluster to read it from; put the key into {KEY_VARIABLE}")
    return value
