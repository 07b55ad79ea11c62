"""Models of the plan that an investigation would follow, in brief and as a tree."""

from collections.abc import Mapping
from typing import Annotated, Self

from pydantic import Field

from tarsy.http.models import Body, View
from tarsy.http.views.configured_objects import ObjectRefView
from tarsy.plan.errors import FieldPath
from tarsy.plan.model import AgentPlan, EscalationPlan, ObjectRef, ServerPlan
from tarsy.plan.outline import OutlineNode, outline
from tarsy.plan.resolve import Explained
from tarsy.resources.schema import AlertType, ObjectName


class PlanQuestion(Body):
    """The alert to plan for."""

    alert_type: AlertType = Field(description="Type of the alert.")
    chain: Annotated[ObjectName, Field(description="Name of the chain. Selected by the type when omitted.")] | None = (
        None
    )


class PlannedServer(View):
    """A tool server of an agent."""

    name: str
    namespace: str
    tool_policy: str = Field(description="ReadOnly: only tools that read. All: every tool.")

    @classmethod
    def of(cls, server: ServerPlan) -> Self:
        """Converts a part of a plan."""
        return cls(name=server.ref.name, namespace=server.ref.namespace, tool_policy=server.policy)


class PlannedSubAgent(View):
    """An agent that another one may dispatch."""

    max_dispatches: int
    agent: "PlannedAgent"


class PlannedAgent(View):
    """An agent of a stage."""

    name: str
    strategy: str
    provider: str
    model: str
    max_iterations: int
    servers: tuple[PlannedServer, ...]
    native_tools: tuple[str, ...]
    skills: tuple[str, ...] = Field(default=(), description="Names of the skills that it follows or may load.")
    sub_agents: tuple[PlannedSubAgent, ...] = Field(default=(), description="Agents that it may dispatch.")
    concurrent_sub_agents: int | None = Field(default=None, description="Maximum of them at the same time.")
    dispatches: int | None = Field(default=None, description="Maximum dispatches in all.")

    @classmethod
    def of(cls, agent: AgentPlan) -> Self:
        """Converts a part of a plan."""
        delegation = agent.delegation
        return cls(
            name=agent.name,
            strategy=agent.strategy.value,
            provider=agent.provider.ref.name,
            model=agent.provider.model,
            max_iterations=agent.max_iterations,
            servers=tuple(map(PlannedServer.of, agent.servers)),
            native_tools=agent.native_tools,
            skills=tuple(one.name for one in agent.skills),
            sub_agents=tuple(
                PlannedSubAgent(max_dispatches=one.max_dispatches, agent=cls.of(one.agent))
                for one in (delegation.agents if delegation is not None else ())
            ),
            concurrent_sub_agents=None if delegation is None else delegation.concurrent,
            dispatches=None if delegation is None else delegation.dispatches,
        )


class PlannedEscalation(View):
    """The second attempt of a stage."""

    when: str = Field(description="CEL expression over the finding of the first attempt.")
    provider: str = Field(description="LLMProvider of the second attempt.")
    model: str

    @classmethod
    def of(cls, plan: EscalationPlan) -> Self:
        """Converts a part of a plan."""
        provider = plan.agents[0].provider
        return cls(when=plan.when, provider=provider.ref.name, model=provider.model)


class PlannedStage(View):
    """A stage: what it computes, or its agents."""

    name: str
    computes_changes: bool = Field(description="Whether it computes what changed, without a model.")
    acts: bool = Field(default=False, description="Whether it acts on the finding, by calls that people approve.")
    success_policy: str
    agents: tuple[PlannedAgent, ...]
    synthesis: PlannedAgent | None
    escalation: PlannedEscalation | None = Field(
        default=None, description="When the stage runs once more with another provider. Null: never."
    )


class SettingView(View):
    """A setting of a part of a plan, with the field that it comes from."""

    name: str
    value: str
    origin: "OriginView | None" = Field(description="Null: built in.")
    about: ObjectRefView | None = Field(description="Object that it names.")
    warnings: tuple[str, ...] = Field(description="What is wrong with that object now.")


class OriginView(ObjectRefView):
    """A field of an object."""

    field: str


class PlanNode(View):
    """A part of a plan, as `tarsy plan` draws it."""

    what: str = Field(description="Chain, stage, agent, synthesis, limits and so on.")
    name: str
    note: str
    about: ObjectRefView | None = Field(description="Object that it stands for.")
    settings: tuple[SettingView, ...]
    sentences: tuple[str, ...]
    warnings: tuple[str, ...] = Field(description="What is wrong with its object now.")
    parts: tuple["PlanNode", ...]

    @classmethod
    def of(cls, node: OutlineNode, warnings: Mapping[tuple[str, str, str], tuple[str, ...]]) -> Self:
        """Converts a part of an outline.

        Args:
            node: the part.
            warnings: what is wrong with objects, by kind, namespace and name.
        """

        def wrong(ref: ObjectRef | None) -> tuple[str, ...]:
            return () if ref is None else warnings.get((ref.kind, ref.namespace, ref.name), ())

        return cls(
            what=node.what,
            name=node.name,
            note=node.note,
            about=_ref(node.about),
            settings=tuple(
                SettingView(
                    name=row.name,
                    value=row.value,
                    origin=_origin(row.origin),
                    about=_ref(row.about),
                    warnings=wrong(row.about),
                )
                for row in node.settings
            ),
            sentences=tuple(node.sentences),
            warnings=wrong(node.about),
            parts=tuple(cls.of(part, warnings) for part in node.parts),
        )


class PlanView(View):
    """The plan that an alert of this type would follow now, or why there is none."""

    namespace: str
    alert_type: str
    chain: str | None = Field(description="Name of the chain. Null: an alert of this type waits for one.")
    chain_namespace: str | None
    plan_hash: str | None
    deadline_seconds: float | None
    stages: tuple[PlannedStage, ...] = ()
    executive_summary: bool = False
    errors: tuple[str, ...] = Field(default=(), description="Why no investigation would start. Empty: it would.")
    tree: PlanNode | None = Field(default=None, description="The whole plan. Null: there is none.")

    @classmethod
    def of(cls, explained: Explained, warnings: Mapping[tuple[str, str, str], tuple[str, ...]]) -> Self:
        """Converts a plan.

        Args:
            explained: the plan with the sources of its settings.
            warnings: what is wrong with its objects, by kind, namespace and name.
        """
        plan = explained.plan
        stages = tuple(
            PlannedStage(
                name=stage.name,
                computes_changes=stage.changes is not None,
                acts=bool(stage.acts),
                success_policy=stage.success_policy.value,
                agents=tuple(map(PlannedAgent.of, stage.agents)),
                synthesis=None if stage.synthesis is None else PlannedAgent.of(stage.synthesis),
                escalation=None if stage.escalation is None else PlannedEscalation.of(stage.escalation),
            )
            for stage in plan.stages
        )
        return cls(
            namespace=plan.namespace,
            alert_type=plan.alert_type,
            chain=plan.chain.name,
            chain_namespace=plan.chain.namespace,
            plan_hash=plan.digest,
            deadline_seconds=plan.limits.investigation_seconds,
            stages=stages,
            executive_summary=plan.executive_summary is not None,
            tree=PlanNode.of(outline(explained), warnings),
        )

    @classmethod
    def without_plan(cls, namespace: str, alert_type: str, chain: tuple[str, str] | None, *errors: str) -> Self:
        """Makes the view of an alert that no investigation would start for.

        Args:
            namespace: namespace of the alert.
            alert_type: its type.
            chain: namespace and name of its chain; None: there is none.
            errors: why there is no plan.
        """
        place, name = chain or (None, None)
        return cls(
            namespace=namespace,
            alert_type=alert_type,
            chain=name,
            chain_namespace=place,
            plan_hash=None,
            deadline_seconds=None,
            errors=errors,
        )


def _ref(ref: ObjectRef | None) -> ObjectRefView | None:
    return None if ref is None else ObjectRefView(kind=ref.kind, namespace=ref.namespace, name=ref.name)


def _origin(at: FieldPath | None) -> OriginView | None:
    return None if at is None else OriginView(kind=at.kind, namespace=at.namespace, name=at.name, field=at.path)
