"""Resolves the agents of a plan: strategy, model, tools and limits of each.

Decision: each role (agent of a stage, synthesis, executive summary, chat) spells out its own levels, from lowest to
highest; `AgentLevels` has those that stages and chat share.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from tarsy.plan import builtin
from tarsy.plan.errors import FieldPath
from tarsy.plan.levels import Level, Scope, last_set
from tarsy.plan.lookup import Lookup
from tarsy.plan.model import AgentPlan, DelegationPlan, Strategy, SubAgentPlan
from tarsy.plan.providers import Choice, Fallbacks, Providers, Work, provider_of
from tarsy.plan.skills import PlannedSkills, Skills
from tarsy.plan.tools import Servers, Tools, acting_as, strategy_in, union_of
from tarsy.resources.v1alpha1.agent import Agent, AgentSpec
from tarsy.resources.v1alpha1.chain import ChatSettings
from tarsy.resources.v1alpha1.common import FallbackEntry
from tarsy.resources.v1alpha1.stage import CONCURRENT_SUB_AGENTS, Stage, SubAgentLimits, Synthesis


@dataclass(frozen=True, slots=True)
class ResolvedAgent:
    """An agent of the plan, and the field each of its settings comes from (missing: built in)."""

    plan: AgentPlan
    origins: Mapping[str, FieldPath] = field(default_factory=dict)

    def called(self, name: str) -> ResolvedAgent:
        """The same agent under another name."""
        return replace(self, plan=self.plan.model_copy(update={"name": name}))


@dataclass(frozen=True, slots=True)
class _AgentParts:
    """Holds the parts of an agent; `wanted` is False if it names an Agent that does not exist."""

    name: str
    agent_name: str
    agent: Agent | None
    strategy: tuple[str, FieldPath | None] | None
    choice: Choice | None
    iterations: tuple[int, FieldPath] | None = None
    servers: Servers = ((), None)
    fallback: tuple[Level[tuple[FallbackEntry, ...]], ...] = ()
    skills: PlannedSkills = ((), None)
    wanted: bool = True


class Agents:
    """Resolves the agents of one plan; errors are reported to `look`, and the agent is then None."""

    def __init__(
        self, scope: Scope, look: Lookup, providers: Providers, brought: Servers | None, skills: Skills
    ) -> None:
        """Takes the servers that the alert names itself (they replace those of every agent), or None."""
        self._skills = skills
        self._scope = scope
        self._look = look
        self._providers = providers
        self._tools = Tools(scope, look, brought)

    def of_stage(
        self, stage: Stage, at: FieldPath, index: int, provider: Level[str] | None = None
    ) -> ResolvedAgent | None:
        """Returns one agent of a stage.

        Args:
            stage: the stage.
            at: its field.
            index: of its entry in `agents`.
            provider: replaces the one that the entry names.
        """
        slot, at_slot = stage.agents[index], (at / "agents")[index]
        levels = self._tools.levels_of_stage(stage, at, index)
        found = self._tools.servers_of(levels)
        choice = self._providers.choose(provider or (slot.llm_provider, at_slot / "llmProvider"))
        made = self._make(
            _AgentParts(
                slot.display_name or slot.name,
                slot.name,
                levels.agent,
                levels.strategy(),
                choice,
                iterations=levels.iterations(),
                servers=found,
                fallback=((stage.fallback, at / "fallback"), (slot.fallback, at_slot / "fallback")),
                skills=self._skills.of(levels),
                wanted=levels.agent is not None,
            )
        )
        return self._delegating(made, stage, at, index) if slot.sub_agents else made

    def _delegating(self, made: ResolvedAgent | None, stage: Stage, at: FieldPath, index: int) -> ResolvedAgent | None:
        """Returns an agent with those that it may dispatch; reports what is wrong with them, although it is None."""
        slot, at_slot = stage.agents[index], (at / "agents")[index]
        found = [self._sub_agent(stage, at, index, place) for place in range(len(slot.sub_agents))]
        if made is None:
            return None
        if made.plan.strategy in builtin.STRATEGIES_WITHOUT_TOOLS:
            self._look.report(
                at_slot / "subAgents",
                f"an agent with strategy {made.plan.strategy.value} calls no tools and dispatches no agents; use "
                f"react, "
                "native-thinking or langchain, or remove subAgents",
            )
        if any(one is None for one in found):
            return None
        set_ = slot.sub_agent_limits or SubAgentLimits()
        subs, origins = list[SubAgentPlan](), dict(made.origins)
        for place, one in enumerate(one for one in found if one is not None):
            subs.append(one[0])
            origins |= {f"delegation.agents[{place}].agent.{name}": where for name, where in one[1].items()}
        for name in ("concurrent", "dispatches"):
            if getattr(set_, name) is not None:
                origins[f"delegation.{name}"] = at_slot / "subAgentLimits" / name
        delegation = DelegationPlan(
            agents=tuple(subs),
            concurrent=CONCURRENT_SUB_AGENTS if set_.concurrent is None else set_.concurrent,
            dispatches=slot.most_dispatches,
        )
        return ResolvedAgent(made.plan.model_copy(update={"delegation": delegation}), origins)

    def _sub_agent(
        self, stage: Stage, at: FieldPath, index: int, place: int
    ) -> tuple[SubAgentPlan, Mapping[str, FieldPath]] | None:
        """Returns an agent that one of a stage may dispatch, with the field each of its settings comes from.

        It is made as an agent of the stage is, with the alert's selection of tools and every policy. What the entry of
        the agent that dispatches it sets for that one does not count for it.
        """
        wish = stage.agents[index].sub_agents[place]
        levels = self._tools.levels_of_sub_agent(stage, at, index, place)
        at_wish = ((at / "agents")[index] / "subAgents")[place]
        made = self._make(
            _AgentParts(
                wish.agent_ref.name,
                wish.agent_ref.name,
                levels.agent,
                levels.strategy(),
                self._providers.choose((None, at_wish)),
                iterations=levels.iterations(),
                servers=self._tools.servers_of(levels),
                skills=self._skills.of(levels),
                fallback=((stage.fallback, at / "fallback"),),
                wanted=levels.agent is not None,
            )
        )
        description = (levels.spec.description or "").strip()
        if levels.agent is not None and not description:
            self._look.report(
                at_wish / "agentRef" / "name",
                f"Agent {wish.agent_ref.name} has no spec.description, so a model cannot know when to dispatch it; "
                f"set it",
            )
        if made is None:
            return None
        most = stage.agents[index].most_dispatches
        sub = SubAgentPlan(agent=made.plan, description=description, max_dispatches=wish.max_dispatches or most)
        return sub, made.origins

    def synthesis(
        self, settings: Synthesis, at: FieldPath, stage: Stage, provider: Level[str] | None = None
    ) -> ResolvedAgent | None:
        """Returns the agent that merges the results of several agents; it never has MCP tools.

        The agent is the one named, else `synthesis-agent` of the chain's namespace or of the library, else built in.

        Args:
            settings: the synthesis block of the stage, empty where it has none.
            at: the field of the stage.
            stage: the stage.
            provider: replaces the one that `settings` names.
        """
        agent = self._tools.own_or_shared(settings.agent, builtin.SYNTHESIS_AGENT, at / "synthesis" / "agent")
        spec = AgentSpec() if agent is None else agent.spec
        at_agent = at if agent is None else FieldPath.of(agent)
        strategy = last_set(
            (spec.strategy, at_agent / "strategy"), (settings.strategy, at / "synthesis" / "strategy")
        ) or (Strategy.SYNTHESIS, None)
        if strategy[1] is not None and not self._look.joins(Strategy(strategy[0]), strategy[1]):
            strategy = (Strategy.SYNTHESIS, None)
        choice = self._providers.choose(provider or (settings.llm_provider, at / "synthesis" / "llmProvider"))
        name = builtin.SYNTHESIS_AGENT if agent is None else agent.metadata.name
        made = self._make(
            _AgentParts(name, name, agent, strategy, choice, fallback=((stage.fallback, at / "fallback"),))
        )
        if made is None or made.plan.instructions:
            return made
        instructions = {"instructions": builtin.SYNTHESIS_INSTRUCTIONS}
        return replace(made, plan=made.plan.model_copy(update=instructions))

    def executive_summary(self) -> ResolvedAgent | None:
        """Returns the agent of the final summary, if the chain (or else the defaults) enables it; it never has tools.

        Its provider is set, from lowest to highest, by the defaults, the defaults for this purpose, the chain, the
        chain for this purpose.
        """
        scope = self._scope
        ours, theirs = scope.chain.executive_summary, scope.defaults.executive_summary
        wishes = [settings.enabled for settings in (ours, theirs) if settings is not None]
        if next((wish for wish in wishes if wish is not None), True) is False:
            return None
        choice = self._providers.choose(
            (provider_of(ours), scope.at_chain / "executiveSummary" / "llmProvider"),
            lambda spec, at: ((provider_of(spec.executive_summary), at / "executiveSummary" / "llmProvider"),),
        )
        name = builtin.EXECUTIVE_SUMMARY_AGENT
        return self._make(_AgentParts(name, name, None, (Strategy.SINGLE_CALL, None), choice))

    def chat(self, members: Iterable[AgentPlan]) -> ResolvedAgent | None:
        """Returns the agent that answers follow-up questions, unless the chain takes none.

        Its servers are those of the chat block, or the chain's, or those of its stages, or else its own. `members` are
        the agents of all stages.
        """
        if (levels := self._tools.levels_of_chat()) is None:
            return None
        settings, at = self._scope.chain.chat or ChatSettings(), self._scope.at_chain / "chat"
        found = self._tools.servers_of(levels, union_of(members))
        choice = self._providers.choose((settings.llm_provider, at / "llmProvider"))
        name = builtin.CHAT_AGENT if levels.agent is None else levels.agent.metadata.name
        # A named agent that does not exist was reported; the rest is made all the same, which finds its errors too.
        iterations = levels.iterations()
        return self._make(
            _AgentParts(
                name,
                name,
                levels.agent,
                levels.strategy(),
                choice,
                iterations=iterations,
                servers=found,
                skills=self._skills.of(levels),
            )
        )

    def _make(self, parts: _AgentParts) -> ResolvedAgent | None:
        agent, choice, servers = parts.agent, parts.choice, parts.servers
        if choice is None:
            return None
        how = strategy_in(parts.strategy)
        at_strategy = parts.strategy[1] if parts.strategy else None
        self._look.runs_on(how, choice.provider, at_strategy or choice.at)
        wish = (agent.spec.native_tools, FieldPath.of(agent) / "nativeTools") if agent else (None, choice.at)
        work = self._providers.work(choice, how, wish, bool(servers[0]))
        change = self._providers.fallback(work, *parts.fallback)
        summarizer = self._providers.summarizer() if servers[0] else None
        if not parts.wanted:
            return None
        if agent is not None:
            self._look.use(agent)
        tools = how not in builtin.STRATEGIES_WITHOUT_TOOLS
        plan = AgentPlan(
            name=parts.name,
            agent=parts.agent_name,
            strategy=how,
            provider=choice.used_by(how),
            max_iterations=1 if not tools else parts.iterations[0] if parts.iterations else builtin.MAX_ITERATIONS,
            instructions=(agent.spec.instructions if agent else None) or "",
            servers=acting_as(agent.spec.service_account_name if agent else None, servers[0]),
            native_tools=tuple(work.native_tools),
            fallback=change.plans,
            fallback_skipped=change.skipped,
            summarizer=summarizer.used_by(Strategy.SINGLE_CALL) if summarizer else None,
            skills=parts.skills[0],
        )
        origins = _origins(at_strategy, choice, parts.iterations if tools else None, servers, work, change)
        if summarizer is not None:
            origins["summarizer"] = summarizer.at
        if parts.skills[1] is not None:
            origins["skills"] = parts.skills[1]
        return ResolvedAgent(plan, origins)


def _origins(
    strategy: FieldPath | None,
    choice: Choice,
    iterations: tuple[int, FieldPath] | None,
    servers: Servers,
    work: Work,
    change: Fallbacks,
) -> dict[str, FieldPath]:
    fields = {
        "strategy": strategy,
        "provider": choice.at,
        "max_iterations": iterations[1] if iterations else None,
        "servers": servers[1],
        "fallback": change.at,
    }
    fields |= {f"native_tools.{tool}": at for tool, at in work.native_tools.items()}
    return {name: at for name, at in fields.items() if at is not None}
