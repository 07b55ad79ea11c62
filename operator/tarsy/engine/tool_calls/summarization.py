"""Summarizes tool results that are too long for a conversation, with a model call of its own.

The result itself is on record before a summary is asked for, and the summary before the agent's model is sent it: an
attempt that resumes asks again for what is missing, and quotes of a finding are looked for in the result, not in the
summary. Where there is no summary, for whatever reason, the model gets the beginning and the end of the result with
the reason (fail open: with the whole result, the next call would not fit the context window).
"""

from dataclasses import dataclass
from uuid import UUID

from tarsy.engine.conversation.state import Conversation
from tarsy.engine.conversation.truncation import BYTES_PER_TOKEN, tokens, truncate_middle
from tarsy.engine.limits.timing import Stopwatch
from tarsy.engine.prompts.summaries import Result, result_cut, summary_request, summary_told
from tarsy.engine.run_context import RunContext
from tarsy.engine.tool_calls.result_on_record import ResultOnRecord, bytes_sent, side_providers
from tarsy.engine.tool_calls.side_call import SideCall, obstacle, side_call
from tarsy.plan.model import AgentPlan, ProviderPlan, SummarizationPlan
from tarsy.record.messages import Role
from tarsy.record.run import Failure, ModelCallKind
from tarsy.record.timeline import Event, EventStatus


def too_long(agent: AgentPlan, server: str, result: str) -> SummarizationPlan | None:
    """Returns the summarization setting of a server whose result is too long for a conversation, else None.

    Args:
        agent: as planned, with the settings of its servers.
        server: name of the server that returned the result.
        result: complete text of the result.
    """
    setting = next((plan.summarization for plan in agent.servers if plan.name == server), None)
    long = setting is not None and setting.enabled and tokens(result) > setting.threshold_tokens
    return setting if long else None


@dataclass(frozen=True, slots=True)
class LongResult(ResultOnRecord):
    """A result that is too long."""

    setting: SummarizationPlan

    def summarized(self, summary: str) -> str:
        """The summary, with how long the result is."""
        return summary_told(summary, tokens(self.text))

    def shortened(self, why: str) -> str:
        """The result without its middle, with why it is not summarized."""
        told = truncate_middle(self.text, self.setting.threshold_tokens * BYTES_PER_TOKEN, "the whole is on record")
        return result_cut(told, tokens(self.text), why)


async def told_of(conversation: Conversation, long: LongResult, world: RunContext, watch: Stopwatch) -> str:
    """Returns the text sent to the model in place of a long result: its summary, or its beginning and end.

    Every model call that this makes is on record when it returns.

    Args:
        conversation: conversation of the agent that made the call.
        long: the result, with its call.
        world: the run, with its budget, recorder and masking.
        watch: counts the time of the iteration; no summary is requested when none is left.
    """
    why = "it was not asked for"
    for provider in side_providers(conversation):
        why = obstacle(world, watch)
        if not why:
            summary, why = await side_call(_summary(conversation, long, provider), conversation, world, watch)
            if summary:
                return long.summarized(summary)
    return long.shortened(why)


def _summary(conversation: Conversation, long: LongResult, provider: ProviderPlan) -> SideCall:
    """Asks a model for a summary once."""
    agent = f"{conversation.agent.name}:summarization"
    messages = summary_request(
        agent,
        _result(conversation, long),
        tokens=long.setting.summary_tokens,
        limit=bytes_sent(conversation, provider),
    )
    metadata = {"model": provider.model, "result_tokens": tokens(long.text)}

    def event(call: UUID, text: str, failure: Failure | None, status: EventStatus) -> Event:
        content = text if failure is None else f"No summary: {failure.message}"
        return long.event(conversation, call, "summary", content, status, metadata)

    return SideCall(agent, messages, provider, ModelCallKind.SUMMARIZATION, long.setting.summary_tokens, event)


def _result(conversation: Conversation, long: LongResult) -> Result:
    asked = next((m.content for m in conversation.messages if m.role is Role.USER), "")
    said = conversation.messages[long.turn.message_seq].content
    return Result(long.turn.call.name, long.turn.call.arguments, long.text, asked, said)
