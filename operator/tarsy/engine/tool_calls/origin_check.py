"""Checks the origins of a call's arguments and the data that they carry out, and refuses forbidden ones.

Untrusted destinations are refused in calls that may change something, sensitive text in every call. The check is made
before people are asked, and for calls that nobody is asked about. An attempt that resumes makes it again, on what is on
record by then.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from tarsy.engine.conversation.state import CallTool, Conversation
from tarsy.engine.ports import Toolbox
from tarsy.engine.prompts.fence import inline
from tarsy.engine.provenance.outflow import SHORTEST_RUN, OutflowSearch
from tarsy.engine.provenance.readings import longest_reading
from tarsy.engine.provenance.result_readings import ResultReadings
from tarsy.engine.provenance.search import OriginSearch, TooManyValues, UntrustedDestination
from tarsy.engine.provenance.turns import take_steps
from tarsy.engine.run_context import RunContext
from tarsy.engine.skills.agent_skills import AgentSkills
from tarsy.masking import off_loop
from tarsy.mcp.arguments.cascade import parse_arguments
from tarsy.plan.model import DataFlowPlan
from tarsy.record.approvals.provenance import RESULTS_A_PAGE, ArgumentOrigin, Origin, ToldResult, shown_origins
from tarsy.record.messages import Refusal

UNTRUSTED_DESTINATION = "UntrustedDestination"
"""Reason for which a call is refused that leads where only untrusted text says."""

SENSITIVE_OUTBOUND = "SensitiveOutbound"
"""Reason for which a call is refused that would send text of a sensitive result."""

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
    try:
        declared = _data_flow(conversation, turn, toolbox, DataFlowPlan.addresses_of)
        search = await off_loop(
            partial(OriginSearch, _parsed(turn, toolbox), declared), longest_reading(turn.call.arguments)
        )
    except TooManyValues as error:
        why = f"{error}, so their origin cannot be determined"
        return CheckedOrigins(refusal=Refusal(UNTRUSTED_DESTINATION, f"{name} was not called: {why}. {_SAY}"))
    prompts = [(origin, world.readings.trusted(text)) for origin, text in _prompt_texts(conversation, world)]
    await take_steps([(search.microseconds(text.size), partial(search.told, origin, text)) for origin, text in prompts])
    async for results in _results(conversation, world):
        await take_steps([(search.microseconds(one.size), partial(search.result, one)) for one in results])
    found = search.untrusted()
    refusal = None if found is None else Refusal(UNTRUSTED_DESTINATION, _sentence(name, found))
    return CheckedOrigins(shown_origins(search.origins()), refusal)


async def check_outflow(
    conversation: Conversation, turn: CallTool, toolbox: Toolbox, world: RunContext
) -> Refusal | None:
    """Returns why a call is not made that would send text of a sensitive result; None: it would not.

    Args:
        conversation: of the agent.
        turn: the call, its arguments without secrets.
        toolbox: the agent's tools.
        world: the run's ports, and the texts of its prompts.
    """
    outbound = _data_flow(conversation, turn, toolbox, DataFlowPlan.outbound_of)
    if not outbound:
        return None
    leaving = {name: value for name, value in _parsed(turn, toolbox).items() if name in outbound}
    search: OutflowSearch | None = None
    async for results in _results(conversation, world, sensitive=True):
        for result in (one.result for one in results):
            if search is None:
                known = [text for _, text in _prompt_texts(conversation, world)]
                size = len(turn.call.arguments) + sum(map(len, known))
                search = await off_loop(partial(OutflowSearch, leaving, known), size)
            if await off_loop(partial(search.shares, result.text), len(result.text)):
                return Refusal(SENSITIVE_OUTBOUND, _leak(turn.call.name, leaving, result))
    return None


async def _results(
    conversation: Conversation, world: RunContext, *, sensitive: bool = False
) -> AsyncIterator[Sequence[ResultReadings]]:
    """Yields the results that the model of an agent may know of: its own, and those of the stages before.

    Those that are kept come first, with what no tool of this run said: the task of a sub-agent, and precedents, whose
    conclusion may contain what an earlier run read. The others are read from the record, a page at a time.

    Args:
        conversation: of the agent.
        world: the run's ports, and the results that are kept.
        sensitive: only those whose text must not leave.
    """
    execution, readings = conversation.execution, world.readings
    kept = readings.told(execution)
    given = world.assigned if world.precedents is None else (*world.assigned, world.precedents)
    first = [*(readings.of(one) for one in given), *kept.values()]
    known = set(kept)  # before others of this execution tell of more
    yield [one for one in first if one.result.marks.sensitive or not sensitive]
    while True:
        page = await world.recorder.told_results(execution, known, sensitive=sensitive)
        yield [readings.tell(execution, one) for one in page]
        if len(page) < RESULTS_A_PAGE:
            return
        known |= {one.id for one in page}


def _parsed(turn: CallTool, toolbox: Toolbox) -> Mapping[str, Any]:
    schema = next((tool.parameters_schema for tool in toolbox.tools if tool.name == turn.call.name), {})
    return parse_arguments(turn.call.arguments, schema)


def _data_flow(
    conversation: Conversation,
    turn: CallTool,
    toolbox: Toolbox,
    arguments_of: Callable[[DataFlowPlan, str], frozenset[str]],
) -> frozenset[str]:
    """Returns arguments that the object of the called server declares."""
    server, tool = toolbox.split(turn.call.name)
    plan = next((one for one in conversation.plan.servers if one.name == server), None)
    return frozenset() if plan is None else arguments_of(plan.data_flow, tool)


def _prompt_texts(conversation: Conversation, world: RunContext) -> Iterator[tuple[Origin, str]]:
    yield from world.prompt_texts
    yield Origin.PLAN, conversation.plan.instructions
    yield from ((Origin.PLAN, server.instructions) for server in conversation.plan.servers)
    skills = AgentSkills.of(conversation.plan, world.skills)
    yield from ((Origin.PLAN, skill.text) for skill in skills.in_use(conversation.loop))


def _leak(name: str, leaving: Iterable[str], result: ToldResult) -> str:
    what = ", ".join(inline(one) for one in sorted(leaving))
    return (
        f"{name} was not called: what it would send ({what}) repeats text of a result that must not leave "
        f"({result.tool}, callId {result.ref}): {SHORTEST_RUN} or more letters and digits in a row. Make the call "
        "without that text, or go on without it."
    )


def _sentence(name: str, found: UntrustedDestination) -> str:
    what = " and ".join(_WORDS[origin] for origin in found.origins)
    calls = ", ".join(dict.fromkeys(f"{one.tool}, callId {one.ref}" for one in found.results[:3]))
    leads = f"its argument {inline(found.argument)} leads to {inline(found.destination)}"
    return (
        f"{name} was not called: {leads}, which this investigation has read in {what} only ({calls}). Neither people "
        f"nor the control plane name it. {_SAY}"
    )
