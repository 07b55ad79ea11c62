"""Makes the timeline events of a model call.

`conversation` is the agent's, and `call` the id of the model call. Each event has a name of its own within its call
(thinking, response, native/0, error), so the end of a stream replaces its beginning, and a step that is written twice
shows once. The final answer is shown without the structured block that programs read; the event's metadata keep it.
"""

from collections.abc import Callable
from typing import Any, assert_never
from uuid import UUID

from tarsy.engine.conversation.state import Conversation
from tarsy.engine.findings.conclusion import without_block
from tarsy.llm.protocol import (
    CodeExecutionChunk,
    GroundingChunk,
    GroundingKind,
    ModelError,
    ModelErrorCode,
    NoticeChunk,
    RetryChunk,
    WaitChunk,
)
from tarsy.record.approvals.acted import read_word
from tarsy.record.ids import event_id
from tarsy.record.timeline import CUT_BY_LENGTH, RETRYING, WAITING, Event, EventStatus, EventType
from tarsy.record.usage import Usage

ResponseReader = Callable[[Conversation, UUID, str], list[Event]]
"""Makes the timeline events of the complete text of a model call, whose id is the second argument."""


def thinking_event(conversation: Conversation, call: UUID, text: str, status: EventStatus) -> Event:
    """Returns the event of the reasoning of a call; its metadata name the source.

    Args:
        conversation: of the agent.
        call: id of the model call.
        text: the reasoning, as far as it has arrived.
        status: of the event.
    """
    return _event(conversation, call, "thinking", EventType.LLM_THINKING, status, text, {"source": "native"})


def response_event(
    conversation: Conversation,
    call: UUID,
    text: str,
    status: EventStatus,
    kind: EventType = EventType.LLM_RESPONSE,
    *,
    cut: str | None = None,
) -> Event:
    """The text of a call.

    Args:
        conversation: of the agent.
        call: id of the model call.
        text: as far as it has arrived.
        status: of the event.
        kind: response, final analysis or executive summary.
        cut: why the text is incomplete (`ModelResponse.cut`).
    """
    forced = kind is EventType.FINAL_ANALYSIS and conversation.loop.concluding
    metadata: dict[str, Any] = {"forced_conclusion": True} if forced else {}
    if cut:
        metadata["cut"] = cut
    if kind is EventType.FINAL_ANALYSIS and conversation.acts:
        _, text = read_word(text)  # the stage tells it, beside what the record says
    if kind is EventType.FINAL_ANALYSIS:
        text, block = without_block(text)
        if block:
            metadata["finding"] = block
    return _event(conversation, call, "response", kind, status, text, metadata)


def thought_event(conversation: Conversation, call: UUID, text: str) -> Event:
    """Returns the event of a thought that a model wrote in its text.

    Args:
        conversation: of the agent.
        call: id of the model call.
        text: the thought.
    """
    metadata = {"source": "react"}
    return _event(conversation, call, "thought", EventType.LLM_THINKING, EventStatus.COMPLETED, text, metadata)


def native_event(
    conversation: Conversation,
    call: UUID,
    number: int,
    chunk: CodeExecutionChunk | GroundingChunk,
    status: EventStatus,
) -> Event:
    """Returns the event of the use of a native tool of the provider.

    Args:
        conversation: of the agent.
        call: id of the model call.
        number: position among the native tool results of the call, from 0.
        chunk: the code that ran with its output, or the pages that were looked up.
        status: of the event.
    """
    match chunk:
        case CodeExecutionChunk(code, output, language):
            kind, content = EventType.CODE_EXECUTION, output
            metadata: dict[str, Any] = {"code": code, "language": language}
        case GroundingChunk(how, queries, sources):
            searched = how is GroundingKind.SEARCH
            kind = EventType.GOOGLE_SEARCH_RESULT if searched else EventType.URL_CONTEXT_RESULT
            content = "\n".join(f"{source.title} {source.url}".strip() for source in sources)
            metadata = {"queries": list(queries), "sources": [{"title": s.title, "url": s.url} for s in sources]}
        case _:
            assert_never(chunk)
    return _event(conversation, call, f"native/{number}", kind, status, content, metadata)


def error_event(conversation: Conversation, call: UUID, error: ModelError) -> Event:
    """Reports an answer that was lost and is asked for again.

    Args:
        conversation: of the agent.
        call: id of the model call.
        error: the failure; the event shows its message and code.
    """
    return unusable_event(conversation, call, error.message, error.code.value)


def fallback_event(conversation: Conversation, call: UUID, text: str, metadata: dict[str, Any]) -> Event:
    """Reports that the agent continues with another provider, because this call failed.

    Args:
        conversation: of the agent.
        call: id of the model call.
        text: the sentences that people read (`ProviderSwitch.text`).
        metadata: the reason and the providers, for programs (`ProviderSwitch.metadata`).
    """
    status = EventStatus.COMPLETED
    return _event(conversation, call, "fallback", EventType.PROVIDER_FALLBACK, status, text, metadata)


def retry_event(conversation: Conversation, call: UUID, number: int, again: RetryChunk) -> Event:
    """Reports a retry, because the provider refused the request or could not be reached.

    Args:
        conversation: of the agent.
        call: id of the model call.
        number: of the retry within the call, from 1.
        again: the failure, and the seconds until the retry.
    """
    text = f"{again.error.message.rstrip('.')}. It is asked again in {again.seconds:.1f} s."
    metadata = {"reason": RETRYING, "error": again.error.code.value, "seconds": round(again.seconds, 2)}
    return _event(conversation, call, f"retry/{number}", EventType.NOTICE, EventStatus.COMPLETED, text, metadata)


def empty_event(conversation: Conversation, call: UUID) -> Event:
    """Makes the event of an empty answer, after which the model is asked again."""
    text = f"Model {conversation.agent.provider.model} gave an empty answer. It is asked again."
    metadata = {"reason": RETRYING, "error": ModelErrorCode.EMPTY.value}
    return _event(conversation, call, "retry/empty", EventType.NOTICE, EventStatus.COMPLETED, text, metadata)


def wait_event(
    conversation: Conversation, call: UUID, number: int, wait: WaitChunk, seconds: float | None = None
) -> Event:
    """Reports a wait for a limit of the provider: that it began, or, with `seconds`, how long it was."""
    name = conversation.agent.provider.ref.name
    why = f"provider {name} has spec.limits.{wait.limit} {wait.allowed:,}"
    metadata: dict[str, Any] = {"reason": WAITING, "provider": name, "limit": wait.limit, "allowed": wait.allowed}
    if seconds is None:
        text, status = f"Waiting for its turn: {why}.", EventStatus.STREAMING
    else:
        text, status = f"Waited {seconds:.1f} s for its turn: {why}.", EventStatus.COMPLETED
        metadata["seconds"] = round(seconds, 2)
    return _event(conversation, call, f"wait/{number}", EventType.NOTICE, status, text, metadata)


def notice_event(conversation: Conversation, call: UUID, notice: NoticeChunk) -> Event:
    """Reports a notice of a provider's client, once an execution: the last call that reports it replaces the others.

    Args:
        conversation: of the agent.
        call: id of the model call.
        notice: the notice; its reason identifies it within the execution.
    """
    return Event(
        id=event_id(conversation.execution, f"notice/{notice.reason}"),
        type=EventType.NOTICE,
        status=EventStatus.COMPLETED,
        content=notice.text,
        metadata={"reason": notice.reason},
        stage=conversation.stage,
        execution=conversation.execution,
        model_call=call,
    )


def sent_back_event(conversation: Conversation, reason: str, text: str) -> Event:
    """Reports that a final answer is sent back to its model, once for each reason.

    Args:
        conversation: of the agent.
        reason: why it is sent back, in CamelCase.
        text: the same as a sentence for people.
    """
    return Event(
        id=event_id(conversation.execution, f"sent-back/{reason}"),
        type=EventType.NOTICE,
        status=EventStatus.COMPLETED,
        content=text,
        metadata={"reason": reason},
        stage=conversation.stage,
        execution=conversation.execution,
    )


def compaction_event(conversation: Conversation, call: UUID, text: str) -> Event:
    """Reports that older parts of the conversation are sent shortened from this call on.

    Args:
        conversation: of the agent.
        call: id of the model call.
        text: a sentence that names the shortened parts.
    """
    metadata = {"reason": "Compaction"}
    return _event(conversation, call, "compaction", EventType.NOTICE, EventStatus.COMPLETED, text, metadata)


def cut_event(conversation: Conversation, call: UUID, usage: Usage | None) -> Event:
    """Reports an answer that was cut off at the output limit of its model.

    Args:
        conversation: of the agent.
        call: id of the model call.
        usage: of the call; None or incomplete: the text does not contain the number of tokens.
    """
    provider = conversation.agent.provider
    after = f" after {usage.output_tokens:,} tokens" if usage is not None and usage.complete else ""
    text = (
        f"The answer of model {provider.model} was cut off{after}, because it reached its output limit; raise "
        f"spec.maxOutputTokens of LLMProvider {provider.ref.name}, or the limit of its server."
    )
    return _event(conversation, call, "cut", EventType.NOTICE, EventStatus.COMPLETED, text, {"reason": CUT_BY_LENGTH})


def unusable_event(conversation: Conversation, call: UUID, text: str, reason: str) -> Event:
    """Reports an answer that could not be used and is asked for again.

    Args:
        conversation: of the agent.
        call: id of the model call.
        text: the problem, for people.
        reason: the problem as a word for programs, such as `MalformedAnswer`.
    """
    return _event(conversation, call, "error", EventType.ERROR, EventStatus.COMPLETED, text, {"reason": reason})


def _event(
    conversation: Conversation,
    call: UUID,
    part: str,
    kind: EventType,
    status: EventStatus,
    content: str,
    metadata: dict[str, Any] | None = None,
) -> Event:
    return Event(
        id=event_id(call, part),
        type=kind,
        status=status,
        content=content,
        metadata=metadata or {},
        stage=conversation.stage,
        execution=conversation.execution,
        model_call=call,
    )
