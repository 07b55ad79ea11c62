"""Renders a plan as a tree of the chain, its stages and agents, with the source of each setting.

Decision: names come from untrusted objects, so they are printed as `Text`, which interprets nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from tarsy.plan.errors import FieldPath
from tarsy.plan.model import AgentPlan, AgentSkill, CallTimeouts, ChangesPlan, Plan, ProviderPlan, ServerPlan, StagePlan
from tarsy.plan.resolve import Explained

BUILT_IN = "built in"
Row = tuple[str, str, FieldPath | None]


def tree(explained: Explained) -> Tree:
    """Renders a plan as a tree."""
    plan, origins = explained.plan, explained.origins
    root = Tree(Text(f"Chain {plan.chain.namespace}/{plan.chain.name}", style="bold"))
    root.add(_table([("alert type", plan.alert_type, None), ("namespace", plan.namespace, None)], origin=False))
    for index, stage in enumerate(plan.stages):
        _stage(root, stage, f"stages[{index}]", origins)
    for path, title, agent in (
        ("executive_summary", "executive summary", plan.executive_summary),
        ("chat", "chat", plan.chat),
    ):
        if agent is not None:
            _agent(root, title, agent, path, origins)
    _figures(root, plan, origins)
    if plan.not_used:
        branch = root.add(Text("not used"))
        for sentence in plan.not_used:
            branch.add(Text(sentence))
    return root


def _stage(root: Tree, stage: StagePlan, path: str, origins: Mapping[str, FieldPath]) -> None:
    head = Text("stage ")
    head.append(stage.name, style="bold")
    if stage.acts:
        head.append("  acts on the finding, by calls that people approve", style="yellow")
    branch = root.add(head)
    if stage.changes is not None:
        branch.add(_changes(stage.changes, f"{path}.changes", origins))
        return
    branch.add(_table([("success policy", stage.success_policy.value, origins.get(f"{path}.success_policy"))]))
    for index, agent in enumerate(stage.agents):
        _agent(branch, "agent", agent, f"{path}.agents[{index}]", origins)
    if stage.synthesis is not None:
        _agent(branch, "synthesis", stage.synthesis, f"{path}.synthesis", origins)
    if (second := stage.escalation) is not None:
        once_more, path = branch.add(Text("escalation")), f"{path}.escalation"
        once_more.add(_table([("when", second.when, origins.get(f"{path}.when"))]))
        for index, agent in enumerate(second.agents):
            _agent(once_more, "agent", agent, f"{path}.agents[{index}]", origins)
        if second.synthesis is not None:
            _agent(once_more, "synthesis", second.synthesis, f"{path}.synthesis", origins)


def _changes(changes: ChangesPlan, path: str, origins: Mapping[str, FieldPath]) -> Table:
    """A stage of kind Changes, which asks no model."""
    rows: list[Row] = [
        ("reads as", changes.account or "nobody: it reads nothing", origins.get(f"{path}.account")),
        ("window", f"{changes.window_seconds:g} s before the onset", origins.get(f"{path}.window_seconds")),
        ("stop when", changes.stop_when, origins.get(f"{path}.stop_when")),
    ]
    return _table(rows)


def _agent(parent: Tree, title: str, agent: AgentPlan, path: str, origins: Mapping[str, FieldPath]) -> None:
    def of(field: str) -> FieldPath | None:
        return origins.get(f"{path}.{field}")

    head = Text(f"{title} ")
    head.append(agent.name, style="bold")
    if agent.agent != agent.name:
        head.append(f" (Agent {agent.agent})")
    rows: list[Row] = [
        ("strategy", agent.strategy.value, of("strategy")),
        ("provider", _provider(agent.provider), of("provider")),
        ("iterations", str(agent.max_iterations), of("max_iterations")),
    ]
    if (waits := agent.provider.timeouts) is not None:
        ref = agent.provider.ref
        rows.append(("call limits", _timeouts(waits), FieldPath(ref.kind, ref.namespace, ref.name) / "timeouts"))
    for server in agent.servers:
        rows += [("server", _server(server), of("servers")), *_reach(server)]
    rows += [("native tool", tool, of(f"native_tools.{tool}")) for tool in agent.native_tools]
    rows += [
        ("fallback", f"{_provider(entry.provider)} with {entry.strategy.value}", of("fallback"))
        for entry in agent.fallback
    ]
    rows += [("left out", f"{name}, which cannot do this work", of("fallback")) for name in agent.fallback_skipped]
    rows += [
        ("skill", f"{one.namespace}/{one.name} ({'required' if one.required else 'offered'})", _skill_origin(one, of))
        for one in agent.skills
    ]
    if agent.summarizer is not None:
        rows.append(("summarizer", _provider(agent.summarizer), of("summarizer")))
    if (delegation := agent.delegation) is not None:
        most = f"{delegation.concurrent} at the same time, {delegation.dispatches} dispatches"
        rows.append(("sub-agents", most, of("delegation.dispatches") or of("delegation.concurrent")))
    branch = parent.add(head)
    branch.add(_table(rows))
    for place, sub in enumerate(delegation.agents if delegation is not None else ()):
        title = f"sub-agent (at most {sub.max_dispatches})"
        _agent(branch, title, sub.agent, f"{path}.delegation.agents[{place}].agent", origins)


def _skill_origin(skill: AgentSkill, of: Callable[[str], FieldPath | None]) -> FieldPath:
    """Returns the field that names a skill, else the rule that chose it."""
    return of("skills") or FieldPath("Skill", skill.namespace, skill.name) / "appliesTo"


def _figures(root: Tree, plan: Plan, origins: Mapping[str, FieldPath]) -> None:
    for title, name, values in (("limits", "limits", plan.limits), ("budget", "budget", plan.budget)):
        rows: list[Row] = [
            (field.replace("_", " "), f"{value:.12g}", origins.get(f"{name}.{field}"))
            for field, value in values.model_dump().items()
            if value is not None and (field not in _OF_CALLS or f"{name}.{field}" in origins)
        ]
        if rows:
            root.add(Text(title)).add(_table(rows))


def _timeouts(waits: CallTimeouts) -> str:
    told = {"silence": waits.silence, "first token": waits.first_token, "stall": waits.stall, "call": waits.call}
    return ", ".join(f"{name} {seconds:.12g} s" for name, seconds in {**told, "iteration": waits.iteration}.items())


_OF_CALLS = frozenset({"iteration_seconds", "model_call_seconds", "first_token_seconds", "stall_seconds"})
"""Limits that count for a provider only where chain or defaults set them: it has its own."""


def _provider(provider: ProviderPlan) -> str:
    return f"{provider.ref.namespace}/{provider.ref.name} ({provider.type}, {provider.model})"


def _server(server: ServerPlan) -> str:
    tools = ", ".join(server.selected) or ", ".join(server.allow) or "all tools"
    without = f" but {', '.join(server.deny)}" if server.deny else ""
    return f"{server.ref.namespace}/{server.name} ({tools}{without}, {server.policy.value})"


def _reach(server: ServerPlan) -> list[Row]:
    """Describes the access of a server that acts with the permissions of another namespace than the run's."""
    reach, at = server.reach, FieldPath("MCPServer", server.ref.namespace, server.name) / "reach"
    if reach is None or not reach.foreign:
        return []
    if reach.namespace is None:
        return [("reach", f"all that {server.name} may", at)]
    kept = "by the server" if reach.bound_by == "Server" else f"by {', '.join(reach.arguments)}"
    return [("reach", f"namespace {reach.namespace} only, {kept}", at)]


def _table(rows: list[Row], *, origin: bool = True) -> Table:
    table = Table.grid(padding=(0, 2))
    for name, value, at in rows:
        where = BUILT_IN if at is None else f"{at.kind} {at.namespace}/{at.name} {at.path}"
        cells = [Text(name), Text(value, style="cyan")]
        table.add_row(*cells, *([Text(where, style="dim")] if origin else []))
    return table
