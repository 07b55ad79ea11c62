"""Holds the parts that model calls about a stored result share: provider, length limit, timeline event."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from tarsy.engine.conversation.state import CallTool, Conversation
from tarsy.engine.conversation.truncation import BYTES_PER_TOKEN
from tarsy.engine.tool_calls.side_call import room_for
from tarsy.plan.model import ProviderPlan
from tarsy.record.ids import call_ref, event_id, idempotency_key
from tarsy.record.timeline import Event, EventStatus, EventType

INPUT_TOKENS = 100_000
"""Tokens of a result that a model is sent, where its context window holds them."""


@dataclass(frozen=True, slots=True)
class ResultOnRecord:
    """A result, and the call that it answers; `call` is the id of its row."""

    turn: CallTool
    call: UUID
    text: str

    def event(
        self,
        conversation: Conversation,
        model_call: UUID,
        purpose: str,
        content: str,
        status: EventStatus,
        metadata: dict[str, Any],
    ) -> Event:
        """Returns the timeline event of a model call about it.

        Args:
            conversation: of the agent that made the call.
            model_call: id of the row of the model call.
            purpose: word that tells its event from others of the model call.
            content: of the event.
            status: of the event.
            metadata: beside the call.
        """
        key = idempotency_key(conversation.execution, self.turn.message_seq, self.turn.index)
        return Event(
            id=event_id(model_call, purpose),
            type=EventType.MCP_TOOL_SUMMARY,
            status=status,
            content=content,
            metadata={
                "name": self.turn.call.name,
                "call_id": call_ref(key),
                "place": [self.turn.message_seq, self.turn.index],
                **metadata,
            },
            stage=conversation.stage,
            execution=conversation.execution,
            model_call=model_call,
            tool_call=self.call,
        )


def side_providers(conversation: Conversation) -> list[ProviderPlan]:
    """Returns the providers that are asked about results: the one for summaries, then the agent's own."""
    own, chosen = conversation.agent.provider, conversation.plan.summarizer
    return [own] if chosen is None or chosen.ref == own.ref else [chosen, own]


def bytes_sent(conversation: Conversation, provider: ProviderPlan) -> int:
    """Returns the bytes of a result that a provider is sent at most."""
    return min(INPUT_TOKENS, room_for(conversation, provider)) * BYTES_PER_TOKEN
