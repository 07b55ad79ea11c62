"""Extracts values from external results with a separate model call, before an agent's model sees them.

The result itself is on record before values are asked for, and the values before the agent's model is sent them: an
attempt that resumes asks again for what is missing, and quotes of a finding are looked for in the result. The model
that extracts has no tools and knows nothing of the investigation. Where there are no values, for whatever reason, the
agent is told so and gets no text (fail closed).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from tarsy.engine.conversation.state import Conversation
from tarsy.engine.limits.timing import Stopwatch
from tarsy.engine.prompts.extraction import extraction_request, no_values_told, values_told
from tarsy.engine.provenance.extracted import read_extracted
from tarsy.engine.run_context import RunContext
from tarsy.engine.tool_calls.result_on_record import ResultOnRecord, bytes_sent, side_providers
from tarsy.engine.tool_calls.side_call import SideCall, obstacle, side_call
from tarsy.plan.model import AgentPlan, ExtractedFieldPlan, ProviderPlan
from tarsy.record.run import Failure, ModelCallKind
from tarsy.record.timeline import Event, EventStatus

EXTRACTION_TOKENS = 1_500
"""Tokens that an answer with values is asked to stay below."""

TEXT_WITHHELD = "The text of this result comes from outside of the cluster. The trace has it; models do not get it."
"""Content of the event of a call whose result is kept from models."""

_UNFIT = "the answer of the extracting model had no value that fits"


def extracted_fields(agent: AgentPlan, server: str, tool: str) -> tuple[ExtractedFieldPlan, ...]:
    """Returns the values that are taken from the results of a tool; none: agents get the text.

    Args:
        agent: as planned, with the declarations of its servers.
        server: name of the server.
        tool: name of the tool on its server.
    """
    plan = next((one for one in agent.servers if one.name == server), None)
    return () if plan is None else plan.extracted_fields(tool)


@dataclass(frozen=True, slots=True)
class OutsideResult(ResultOnRecord):
    """A result from outside, with the values that are taken from it."""

    fields: Sequence[ExtractedFieldPlan]


async def told_of_outside(
    conversation: Conversation, outside: OutsideResult, world: RunContext, watch: Stopwatch, known: str | None = None
) -> str:
    """Returns the text that an agent is told in place of a result from outside.

    Every model call that this makes is on record when it returns.

    Args:
        conversation: of the agent that made the call.
        outside: the result, with its call.
        world: the run, with its budget, recorder and masking.
        watch: counts the time of the iteration.
        known: values that an earlier attempt has put on record.
    """
    if known is not None:
        return values_told(known)
    why = "they were not asked for"
    for provider in side_providers(conversation):
        why = obstacle(world, watch)
        if not why:
            answer, why = await side_call(_extraction(conversation, outside, provider), conversation, world, watch)
            found = read_extracted(answer, outside.fields, outside.text) if answer else None
            if found is not None:
                return values_told(found.told())
            why = why or _UNFIT
    return no_values_told(why)


def _extraction(conversation: Conversation, outside: OutsideResult, provider: ProviderPlan) -> SideCall:
    """Asks a model for values once."""
    agent = f"{conversation.agent.name}:extraction"
    limit = bytes_sent(conversation, provider)
    messages = extraction_request(agent, outside.turn.call.name, outside.text, outside.fields, limit=limit)
    metadata = {"model": provider.model, "extracted": [field.name for field in outside.fields]}

    def event(call: UUID, text: str, failure: Failure | None, status: EventStatus) -> Event:
        content = "" if failure is None else f"No values: {failure.message}"
        if failure is None and status is EventStatus.COMPLETED:
            found = read_extracted(text, outside.fields, outside.text)
            content = f"No values: {_UNFIT}." if found is None else found.told()
            status = EventStatus.FAILED if found is None else status
        return outside.event(conversation, call, "values", content, status, metadata)

    return SideCall(agent, messages, provider, ModelCallKind.EXTRACTION, EXTRACTION_TOKENS, event)
