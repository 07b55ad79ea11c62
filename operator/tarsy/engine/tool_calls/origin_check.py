"""Finds out where the arguments of a call that may change something come from, and refuses untrusted destinations.

The check is made before people are asked, and for calls that nobody is asked about. An attempt that resumes makes it
again, on what is on record by then.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial

from tarsy.engine.conversation.state import CallTool, Conversation
from tarsy.engine.ports import Toolbox
from tarsy.engine.prompts.fence import inline
from tarsy.engine.provenance.search import OriginSearch, TooManyValues, UntrustedDestination
from tarsy.engine.run_context import RunContext
from tarsy.masking import off_loop
from tarsy.mcp.arguments.cascade import parse_arguments
from tarsy.record.messages import Refusal
from tarsy.record.provenance import ArgumentOrigin, Origin, ToldResult, shown_origins

UNTRUSTED_DESTINATION = "UntrustedDestination"
"""Reason for which a call is refused that leads where only untrusted text says."""

_WORDS = {Origin.A: "text that workloads can write", Origin.X: "text from outside of the cluster"}
_SAY = "Say in your answer what you would do with it; do not ask for it again."


@dataclass(frozen=True, slots=True)
class CheckedOrigins:
    """The origins of the arguments of a call that are recorded, and why it is not made, if it is not."""

    origins: tuple[ArgumentOrigin, ...] = ()
    refusal: Refusal | None = None


async def check_origins(
    conversation: Conversation, turn: CallTool, toolbox: Toolbox, world: RunContext
) -> CheckedOrigins:
    """Returns where the arguments of a call come from, with a refusal if a destination is untrusted.

    Args:
        conversation: of the agent.
        turn: the call, its arguments without secrets.
        toolbox: the agent's tools.
        world: the run's ports, and the texts of its prompts.
    """
    name = turn.call.name
    schema = next((tool.parameters_schema for tool in toolbox.tools if tool.name == name), {})
    try:
        search = OriginSearch(parse_arguments(turn.call.arguments, schema))
    except TooManyValues as error:
        why = f"{error}, so that nobody can tell where they come from"
        return CheckedOrigins(refusal=Refusal(UNTRUSTED_DESTINATION, f"{name} was not called: {why}. {_SAY}"))
    agent = conversation.plan
    planned = [agent.instructions, *(server.instructions for server in agent.servers)]
    for origin, text in [*world.prompt_texts, *((Origin.PLAN, text) for text in planned)]:
        search.told(origin, text)
    async for result in all_results(world):
        await off_loop(partial(search.result, result), len(result.text))
    found = search.untrusted()
    refusal = None if found is None else Refusal(UNTRUSTED_DESTINATION, _sentence(name, found))
    return CheckedOrigins(shown_origins(search.origins()), refusal)


async def all_results(world: RunContext) -> AsyncIterator[ToldResult]:
    """Yields all results that models of the run may have seen."""
    after = None
    while page := await world.recorder.told_results(after):
        for result in page:
            yield result
        after = page[-1].id


def _sentence(name: str, found: UntrustedDestination) -> str:
    what = " and ".join(_WORDS[origin] for origin in found.origins)
    calls = ", ".join(dict.fromkeys(f"{one.tool}, callId {one.ref}" for one in found.results[:3]))
    leads = f"its argument {inline(found.argument)} leads to {inline(found.destination)}"
    return (
        f"{name} was not called: {leads}, which this investigation has read in {what} only ({calls}). Neither people "
        f"nor the control plane name it. {_SAY}"
    )
