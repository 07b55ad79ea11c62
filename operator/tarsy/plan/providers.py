"""Resolves the models of a plan: provider, native tools and fallbacks of each agent.

Decision: what a provider offers by itself (its own `nativeTools`) is used where the strategy can, and silently left
where it cannot; what an Agent asks for must be there. A fallback that cannot do an agent's work is left out of that
agent's list, so one list can serve a whole namespace; only when no entry can do the work is it
an error, since the author believes to have a fallback and has none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from tarsy.plan import bounds, builtin
from tarsy.plan.errors import FieldPath
from tarsy.plan.levels import Level, Scope, last_set
from tarsy.plan.lookup import Lookup
from tarsy.plan.model import Backend, FallbackPlan, ProviderPlan, Strategy
from tarsy.plan.parts import provider_plan
from tarsy.plan.provider_types import provider_type
from tarsy.plan.stand_ins import StandsIn
from tarsy.plan.timeouts import call_timeouts
from tarsy.resources.v1alpha1.agent import Agent
from tarsy.resources.v1alpha1.common import (
    ExecutiveSummarySettings,
    FallbackEntry,
    NativeTools,
    SummarizationSettings,
)
from tarsy.resources.v1alpha1.investigation_defaults import InvestigationDefaults, InvestigationDefaultsSpec
from tarsy.resources.v1alpha1.llm_provider import LLMProvider

_T = TypeVar("_T", str, tuple[FallbackEntry, ...])
OfDefaults = Callable[[InvestigationDefaultsSpec, FieldPath], tuple[Level[_T], ...]]
"""The levels that one object of defaults has for a setting, from lowest to highest."""


def _nothing(spec: InvestigationDefaultsSpec, at: FieldPath) -> tuple[Level[str], ...]:
    return ()


def provider_of(settings: ExecutiveSummarySettings | SummarizationSettings | None) -> str | None:
    """The LLMProvider that a setting for one purpose names."""
    return settings.llm_provider if settings else None


@dataclass(frozen=True, slots=True)
class Choice:
    """A provider, its part of the plan, and the field that chose it."""

    provider: LLMProvider
    plan: ProviderPlan
    at: FieldPath

    def used_by(self, strategy: Strategy) -> ProviderPlan:
        """The provider's part of the plan, for an agent of this strategy."""
        spec = self.provider.spec
        chosen = Backend(spec.backend) if spec.backend else None
        return self.plan.model_copy(update={"backend": builtin.client(strategy, spec.type, chosen)})


@dataclass(frozen=True, slots=True)
class Work:
    """An agent's use of its provider: strategy, native tools, each with its field, and whether it also has tools of
    MCP servers."""

    choice: Choice
    strategy: Strategy
    native_tools: dict[str, FieldPath]
    wish: Level[NativeTools]
    tools: bool


@dataclass(frozen=True, slots=True)
class Fallbacks:
    """Replacements of a provider, the providers left out, and the field of the list (None: nowhere)."""

    plans: tuple[FallbackPlan, ...] = ()
    skipped: tuple[str, ...] = ()
    at: FieldPath | None = None


@dataclass(frozen=True, slots=True)
class Terms:
    """The settings that may name providers in a run.

    `elsewhere` are the servers (namespace/name) that act with the rights of the chain's namespace in a run of another
    one: while there are any, providers are those of the chain's namespace.
    """

    elsewhere: tuple[str, ...] = ()


class Providers:
    """Chooses models for the agents of one plan; errors are reported to `look`."""

    def __init__(self, scope: Scope, look: Lookup, of_alert: Level[NativeTools], terms: Terms | None = None) -> None:
        """Resolves the models of one plan.

        Args:
            scope: the chain and the defaults.
            look: resolves references and gathers errors.
            of_alert: the alert's native tools, the highest level.
            terms: the settings that may name providers; None: all.
        """
        self._scope = scope
        self._look = look
        self._of_alert = of_alert
        self._elsewhere = terms.elsewhere if terms else ()
        self._at_shared = FieldPath(InvestigationDefaults.KIND, scope.home, scope.at_defaults.name)
        self._stands_in = StandsIn()

    def choose(self, own: Level[str], purpose: OfDefaults[str] = _nothing) -> Choice | None:
        """Returns the provider of an agent.

        Args:
            own: the agent's own field.
            purpose: returns the fields of defaults for the agent's purpose.
        """
        scope = self._scope
        chosen = self._pick(
            lambda spec, at: ((spec.llm_provider, at / "llmProvider"), *purpose(spec, at)),
            (scope.chain.llm_provider, scope.at_chain / "llmProvider"),
            own,
        )
        if chosen is None:
            places = (scope.home,) if self._elsewhere else scope.path
            self._look.unchosen = self._look.report(
                scope.at_chain / "llmProvider",
                "no LLMProvider is set; name one here, or in spec.llmProvider of "
                f"{InvestigationDefaults.KIND} {scope.at_defaults.name} in namespace {' or '.join(places)}"
                + (f" ({'; '.join(self._look.left_out)})" if self._elsewhere and self._look.left_out else ""),
            )
            return None
        return self._named(*chosen)

    def work(self, choice: Choice, strategy: Strategy, wish: Level[NativeTools], tools: bool) -> Work:
        """Returns an agent's use of a provider; reports native tools that it requests and cannot have.

        Args:
            choice: the provider.
            strategy: of the agent.
            wish: the agent's for native tools.
            tools: whether it has tools of servers.

        An alert's wish is no error here: it is for those agents that can have it (see `resolve`).
        """
        on, refused = self._native_tools(choice.provider, strategy, wish, tools)
        for at in refused.values():
            if at.kind == Agent.KIND:
                self._look.report(at, self._no_native_tools(choice.provider, strategy))
        return Work(choice, strategy, on, wish, tools)

    def fallback(self, work: Work, *levels: Level[tuple[FallbackEntry, ...]]) -> Fallbacks:
        """Returns the fallbacks of an agent; the highest level that is set counts, `[]` clears.

        Args:
            work: the agent's use of its provider.
            levels: lists above those of defaults and chain, from lowest to highest.
        """
        chosen = self._pick(
            lambda spec, at: ((spec.fallback, at / "fallback"),),
            (self._scope.chain.fallback, self._scope.at_chain / "fallback"),
            *levels,
        )
        if chosen is None:
            return Fallbacks()
        entries, at = chosen
        plans: list[FallbackPlan] = []
        skipped: list[str] = []
        reasons: list[str] = []
        for index, entry in enumerate(entries):
            choice = self._named(entry.llm_provider, at[index] / "llmProvider")
            if choice is None:
                return Fallbacks(at=at)
            itself = choice.plan.ref == work.choice.plan.ref
            self._stands_in.note(at, index, entry.llm_provider, itself, work.choice.at)
            if itself:
                continue  # a change to itself is none
            strategy = builtin.stand_in(work.strategy, Strategy(entry.strategy) if entry.strategy else None)
            on, refused = self._native_tools(choice.provider, strategy, work.wish, work.tools)
            if not builtin.runs_on(strategy, choice.provider.spec.type):
                reasons.append(f"{choice.provider} does not support the backend of strategy {strategy}")
            elif needed := [tool for tool in refused if tool in work.native_tools]:
                fields = ", ".join(builtin.NATIVE_TOOLS[tool] for tool in needed)
                reasons.append(f"{choice.provider} with strategy {strategy} does not support {fields}")
            else:
                plans.append(FallbackPlan(provider=choice.used_by(strategy), strategy=strategy, native_tools=tuple(on)))
                continue
            skipped.append(choice.plan.ref.name)
        if skipped and not plans:
            self._look.report(
                at,
                f"no entry can replace {work.choice.provider} with strategy {work.strategy}: "
                f"{'; '.join(reasons)}; set a strategy that the provider of an entry supports, or name other providers",
            )
        return Fallbacks(tuple(plans), tuple(skipped), at)

    def fallbacks_are_others(self) -> None:
        """Reports providers that are their own fallback, once the fallbacks of all agents are known."""
        for at, name in self._stands_in.useless():
            self._look.report(
                at,
                f"{LLMProvider.KIND} {name} is its own fallback here, which has no effect; name another, or leave it "
                "out",
            )

    def summarizer(self) -> Choice | None:
        """Returns the model that summarizes long tool results, where the chain or the defaults name one."""
        ours = self._scope.chain.summarization
        chosen = self._pick(
            lambda spec, at: ((provider_of(spec.summarization), at / "summarization" / "llmProvider"),),
            (provider_of(ours), self._scope.at_chain / "summarization" / "llmProvider"),
        )
        return self._named(*chosen) if chosen else None

    def _pick(self, of_defaults: OfDefaults[_T], *levels: Level[_T]) -> tuple[_T, FieldPath] | None:
        """The highest level that is set; of defaults, those that may name providers in this run."""
        scope = self._scope
        if (chosen := last_set(*levels)) is not None:
            return chosen
        lent = last_set(*of_defaults(scope.defaults, scope.at_defaults))
        names_none = lent is not None and not lent[0]
        if not self._elsewhere or scope.at_defaults.namespace == scope.home or names_none:
            return lent
        if lent is not None:
            self._look.leave_out(self._not_lent(*lent))
        return last_set(*of_defaults(scope.shared, self._at_shared))

    def _not_lent(self, named: str | tuple[FallbackEntry, ...], at: FieldPath) -> str:
        names = (named,) if isinstance(named, str) else tuple(entry.llm_provider for entry in named)
        chain = self._scope.at_chain
        return (
            f"{at.kind} {at.namespace}/{at.name}: {at.path}: LLMProvider {', '.join(names)} is not used: "
            f"MCPServer {', '.join(self._elsewhere)} acts with the rights of namespace {chain.namespace}, and a "
            f"provider of namespace {at.namespace} would receive the data that it reads; run a Chain of namespace "
            f"{at.namespace}, or allow it in spec.allowedProviderNamespaces of Chain {chain.namespace}/{chain.name}"
        )

    def _named(self, name: str, at: FieldPath) -> Choice | None:
        provider = self._look.named(LLMProvider, at.namespace, name, at)
        # Defaults grant nothing to other namespaces, so what the library's name must admit the run by itself.
        from_defaults = at.kind == InvestigationDefaults.KIND
        if provider is None or (from_defaults and not self._look.admitted(provider, self._scope.namespace, at)):
            return None
        self._look.native_tools_exist(provider)
        self._look.thinking_fits(provider)
        limits, chosen = bounds.limits(self._scope)
        timeouts = call_timeouts(provider, limits, chosen)
        plan = provider_plan(provider, self._look.use(provider)).model_copy(update={"timeouts": timeouts})
        return Choice(provider, plan, at)

    def _native_tools(
        self, provider: LLMProvider, strategy: Strategy, wish: Level[NativeTools], tools: bool
    ) -> tuple[dict[str, FieldPath], dict[str, FieldPath]]:
        """The native tools that are on, and those that agent or alert want and cannot have, each with its field."""
        levels = ((provider.spec.native_tools, FieldPath.of(provider) / "nativeTools"), wish, self._of_alert)
        native = builtin.BACKENDS[strategy] is Backend.GOOGLE_NATIVE
        native = native and builtin.runs_on(strategy, provider.spec.type)
        native = native and (not tools or provider_type(provider.spec.type).combines_tools(provider.spec.model))
        on: dict[str, FieldPath] = {}
        refused: dict[str, FieldPath] = {}
        for tool, field in builtin.NATIVE_TOOLS.items():
            chosen = last_set(*((getattr(wishes, tool) if wishes else None, at / field) for wishes, at in levels))
            if chosen is None or not chosen[0]:
                continue
            if native:
                on[tool] = chosen[1]
            elif chosen[1].kind != LLMProvider.KIND:
                refused[tool] = chosen[1]
        return on, refused

    def _no_native_tools(self, provider: LLMProvider, strategy: Strategy) -> str:
        native = Backend.GOOGLE_NATIVE
        kind = provider_type(provider.spec.type)
        if not kind.has_native_tools:
            return f"{provider} of type {provider.spec.type} has no native tools; leave this out, or use another"
        if builtin.BACKENDS[strategy] is native:
            return (
                f"model {provider.spec.model} of {provider} cannot combine native tools with the tools of MCP servers; "
                "leave one of them out, or use a model from Gemini 3 on"
                + (f" with type {kind.combining_type}" if kind.combining_type else "")
            )
        return f"strategy {strategy} cannot use native tools; leave this out, or use one with the backend {native}"
