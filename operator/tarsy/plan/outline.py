"""Outlines a plan as a tree of its stages and agents, with the source of each setting.

Decision: one outline is drawn by the command line and by the web UI, so both show the same. It leaves out instructions,
addresses and references to Secrets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tarsy.plan.errors import FieldPath
from tarsy.plan.model import (
    AgentPlan,
    AgentSkill,
    CallTimeouts,
    ChangesPlan,
    ObjectRef,
    Plan,
    ProviderPlan,
    ServerPlan,
    StagePlan,
)
from tarsy.plan.resolve import Explained


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting: `origin` is the field that it comes from (None: built in), `about` the object that it names."""

    name: str
    value: str
    origin: FieldPath | None = None
    about: ObjectRef | None = None


@dataclass(frozen=True, slots=True)
class OutlineNode:
    """A part of a plan. `what` is stage, agent and so on; `note` is a remark behind its name.

    `about` is the object that it stands for, and `sentences` are remarks below it.
    """

    what: str
    name: str = ""
    note: str = ""
    about: ObjectRef | None = None
    settings: Sequence[Setting] = ()
    sentences: Sequence[str] = ()
    parts: Sequence[OutlineNode] = ()


def outline(explained: Explained) -> OutlineNode:
    """Outlines a plan."""
    return _Outline(explained).whole()


class _Outline:
    """Outlines one plan."""

    def __init__(self, explained: Explained) -> None:
        self._plan, self._origins = explained.plan, explained.origins
        self._agents = {ref.name: ref for ref in explained.plan.objects if ref.kind == "Agent"}

    def whole(self) -> OutlineNode:
        """Outlines the chain with its stages, limits and budget."""
        plan = self._plan
        parts = [self._stage(stage, f"stages[{index}]") for index, stage in enumerate(plan.stages)]
        for path, what, agent in (
            ("executive_summary", "executive summary", plan.executive_summary),
            ("chat", "chat", plan.chat),
        ):
            if agent is not None:
                parts.append(self._agent(what, agent, path))
        parts += self._figures(plan)
        if plan.not_used:
            parts.append(OutlineNode("not used", sentences=plan.not_used))
        chain = f"{plan.chain.namespace}/{plan.chain.name}"
        told = [Setting("alert type", plan.alert_type), Setting("namespace", plan.namespace)]
        return OutlineNode("Chain", chain, about=plan.chain, settings=told, parts=parts)

    def _stage(self, stage: StagePlan, path: str) -> OutlineNode:
        note = "acts on the finding, by calls that people approve" if stage.acts else ""
        if stage.changes is not None:
            return OutlineNode("stage", stage.name, note, settings=self._changes(stage.changes, f"{path}.changes"))
        policy = Setting("success policy", stage.success_policy.value, self._origins.get(f"{path}.success_policy"))
        parts = self._members(stage.agents, stage.synthesis, path)
        if (second := stage.escalation) is not None:
            at = f"{path}.escalation"
            when = Setting("when", second.when, self._origins.get(f"{at}.when"))
            again = self._members(second.agents, second.synthesis, at)
            parts.append(OutlineNode("escalation", settings=[when], parts=again))
        return OutlineNode("stage", stage.name, note, settings=[policy], parts=parts)

    def _members(self, agents: Sequence[AgentPlan], synthesis: AgentPlan | None, path: str) -> list[OutlineNode]:
        found = [self._agent("agent", agent, f"{path}.agents[{index}]") for index, agent in enumerate(agents)]
        return [*found, *([self._agent("synthesis", synthesis, f"{path}.synthesis")] if synthesis is not None else [])]

    def _changes(self, changes: ChangesPlan, path: str) -> list[Setting]:
        """A stage of kind Changes, which asks no model."""
        told = (
            ("reads as", changes.account or "nobody: it reads nothing", "account"),
            ("window", f"{changes.window_seconds:g} s before the onset", "window_seconds"),
            ("stop when", changes.stop_when, "stop_when"),
        )
        return [Setting(name, value, self._origins.get(f"{path}.{at}")) for name, value, at in told]

    def _agent(self, what: str, agent: AgentPlan, path: str) -> OutlineNode:
        subs = agent.delegation.agents if agent.delegation is not None else ()
        parts = [
            self._agent(f"sub-agent (at most {sub.max_dispatches})", sub.agent, f"{path}.delegation.agents[{n}].agent")
            for n, sub in enumerate(subs)
        ]
        note = f"(Agent {agent.agent})" if agent.agent != agent.name else ""
        rows, of = self._of_agent(agent, path), self._agents.get(agent.agent)
        return OutlineNode(what, agent.name, note, of, settings=rows, parts=parts)

    def _of_agent(self, agent: AgentPlan, path: str) -> list[Setting]:
        def of(name: str) -> FieldPath | None:
            return self._origins.get(f"{path}.{name}")

        rows = [
            Setting("strategy", agent.strategy.value, of("strategy")),
            Setting("provider", _provider(agent.provider), of("provider"), agent.provider.ref),
            Setting("iterations", str(agent.max_iterations), of("max_iterations")),
        ]
        if (waits := agent.provider.timeouts) is not None:
            ref = agent.provider.ref
            at = FieldPath(ref.kind, ref.namespace, ref.name) / "timeouts"
            rows.append(Setting("call limits", _timeouts(waits), at))
        for server in agent.servers:
            rows += [Setting("server", _server(server), of("servers"), server.ref), *_reach(server)]
        rows += [Setting("native tool", tool, of(f"native_tools.{tool}")) for tool in agent.native_tools]
        rows += [
            Setting(
                "fallback",
                f"{_provider(entry.provider)} with {entry.strategy.value}",
                of("fallback"),
                entry.provider.ref,
            )
            for entry in agent.fallback
        ]
        rows += [
            Setting("left out", f"{name}, which cannot do this work", of("fallback")) for name in agent.fallback_skipped
        ]
        rows += [_skill(one, of("skills")) for one in agent.skills]
        if agent.summarizer is not None:
            named = agent.summarizer
            rows.append(Setting("summarizer", _provider(named), of("summarizer"), named.ref))
        if (delegation := agent.delegation) is not None:
            most = f"{delegation.concurrent} at the same time, {delegation.dispatches} dispatches"
            rows.append(Setting("sub-agents", most, of("delegation.dispatches") or of("delegation.concurrent")))
        return rows

    def _figures(self, plan: Plan) -> list[OutlineNode]:
        found = []
        for name, values in (("limits", plan.limits), ("budget", plan.budget)):
            rows = [
                Setting(one.replace("_", " "), f"{value:.12g}", self._origins.get(f"{name}.{one}"))
                for one, value in values.model_dump().items()
                if value is not None and (one not in _OF_CALLS or f"{name}.{one}" in self._origins)
            ]
            if rows:
                found.append(OutlineNode(name, settings=rows))
        return found


_OF_CALLS = frozenset({"iteration_seconds", "model_call_seconds", "first_token_seconds", "stall_seconds"})
"""Limits that count for a provider only where chain or defaults set them: it has its own."""


def objects_of(node: OutlineNode) -> Mapping[tuple[str, str, str], ObjectRef]:
    """Returns the objects that an outline names, by kind, namespace and name."""
    found = {(one.kind, one.namespace, one.name): one for one in _named(node)}
    for part in node.parts:
        found |= objects_of(part)
    return found


def _named(node: OutlineNode) -> list[ObjectRef]:
    named = [node.about, *(row.about for row in node.settings)]
    return [one for one in named if one is not None]


def _skill(skill: AgentSkill, named: FieldPath | None) -> Setting:
    """A skill, with the field that names it, else the rule that chose it."""
    text = f"{skill.namespace}/{skill.name} ({'required' if skill.required else 'offered'})"
    origin = named or FieldPath("Skill", skill.namespace, skill.name) / "appliesTo"
    return Setting("skill", text, origin, ObjectRef(kind="Skill", namespace=skill.namespace, name=skill.name))


def _timeouts(waits: CallTimeouts) -> str:
    told = {"silence": waits.silence, "first token": waits.first_token, "stall": waits.stall, "call": waits.call}
    return ", ".join(f"{name} {seconds:.12g} s" for name, seconds in {**told, "iteration": waits.iteration}.items())


def _provider(provider: ProviderPlan) -> str:
    return f"{provider.ref.namespace}/{provider.ref.name} ({provider.type}, {provider.model})"


def _server(server: ServerPlan) -> str:
    tools = ", ".join(server.selected) or ", ".join(server.allow) or "all tools"
    without = f" but {', '.join(server.deny)}" if server.deny else ""
    return f"{server.ref.namespace}/{server.name} ({tools}{without}, {server.policy.value})"


def _reach(server: ServerPlan) -> list[Setting]:
    """Describes the access of a server that acts with the permissions of another namespace than the run's."""
    reach, at = server.reach, FieldPath("MCPServer", server.ref.namespace, server.name) / "reach"
    if reach is None or not reach.foreign:
        return []
    if reach.namespace is None:
        return [Setting("reach", f"all that {server.name} may", at)]
    kept = "by the server" if reach.bound_by == "Server" else f"by {', '.join(reach.arguments)}"
    return [Setting("reach", f"namespace {reach.namespace} only, {kept}", at)]
