"""Resolves the skills of the agents of a plan: rules first, then names.

Decision: a skill that no field names is used only by chains of its own namespace. One of the library is used elsewhere
where an Agent or a Chain there names it: its text would otherwise drive tools with rights of a namespace that never
asked for it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Final

from tarsy.plan.errors import FieldPath
from tarsy.plan.levels import AgentLevels, Scope, last_set
from tarsy.plan.lookup import Lookup, object_ref
from tarsy.plan.model import AgentPlan, AgentSkill, ConfigMapKey, GitFilePlan, Plan, SkillPlan
from tarsy.plan.scope import admits
from tarsy.record.text import clean
from tarsy.resources.v1alpha1.skill import AppliesTo, Skill, SkillSelection
from tarsy.resources.v1alpha1.stage import StageAgent

MOST_SKILLS: Final = 32
"""Maximum skills of an agent."""

PlannedSkills = tuple[tuple[AgentSkill, ...], FieldPath | None]


class Skills:
    """Finds the skills of the agents of one plan; what is wrong goes to `look`.

    Args:
        scope: the levels that all agents share.
        look: resolves the references.
        alert_type: type of the alert; None: any, so that every rule applies.
    """

    def __init__(self, scope: Scope, look: Lookup, alert_type: str | None) -> None:
        self._scope = scope
        self._look = look
        self._alert_type = alert_type
        self._found: dict[tuple[str, str], SkillPlan] = {}

    @property
    def plans(self) -> tuple[SkillPlan, ...]:
        """The skills that agents use, by namespace and name."""
        return tuple(plan for _, plan in sorted(self._found.items()))

    def of(self, levels: AgentLevels) -> PlannedSkills:
        """Returns the skills of an agent, and the field that names them; None: their own rules choose them.

        Args:
            levels: its levels.
        """
        named = last_set(
            (levels.spec.skills, levels.at_agent / "skills"),
            *((block.skills, at / "skills") for block, at in levels.blocks if isinstance(block, StageAgent)),
        )
        if named is None:
            return tuple(self._by_rule()), None
        return tuple(self._named(*named)), named[1]

    def _by_rule(self) -> Iterator[AgentSkill]:
        at = self._scope.at_chain
        chosen = [
            skill
            for skill in self._look.catalog.list(Skill, self._scope.home)
            if skill.spec.applies_to is not None and self._applies(skill.spec.applies_to)
        ]
        if len(chosen) > MOST_SKILLS:
            self._look.report(
                at,
                f"{len(chosen)} Skills of namespace {at.namespace} apply to its agents by their appliesTo, at most "
                f"{MOST_SKILLS} may; narrow their rules, or name the skills in spec.skills of the Agents",
            )
            return
        for skill in sorted(chosen, key=lambda one: one.metadata.name):
            self._look.note(skill, at)
            yield self._use(skill, required=False)

    def _named(self, selections: tuple[SkillSelection, ...], at: FieldPath) -> Iterator[AgentSkill]:
        places = tuple(dict.fromkeys((at.namespace, *self._scope.path[1:])))
        for index, selection in enumerate(selections):
            found = self._look.shared(Skill, places, selection.name, at[index] / "name")
            if found is None or not self._let_in(found, at):
                continue
            if found.spec.applies_to is None or self._applies(found.spec.applies_to):
                yield self._use(found, required=bool(selection.required))

    def _let_in(self, skill: Skill, at: FieldPath) -> bool:
        """Whether an Agent of the library, in a chain of the run's namespace, brings the skill that it names."""
        namespace = self._scope.namespace
        return at.namespace == self._scope.home or admits(
            skill, namespace, self._look.catalog.namespace_labels(namespace)
        )

    def _applies(self, rule: AppliesTo) -> bool:
        if self._alert_type is None:
            return True
        return applies(rule, self._alert_type, self._scope.namespace)

    def _use(self, skill: Skill, *, required: bool) -> AgentSkill:
        meta = skill.metadata
        if (meta.namespace, meta.name) not in self._found:
            self._look.use(skill)
            self._found[meta.namespace, meta.name] = planned_skill(skill)
        return AgentSkill(namespace=meta.namespace, name=meta.name, required=required)


def applies(rule: AppliesTo, alert_type: str, namespace: str) -> bool:
    """Whether a rule applies to the alerts of a type in a namespace, whatever labels they name.

    Args:
        rule: of the skill.
        alert_type: type of the alert.
        namespace: of the run.
    """
    return (not rule.alert_types or alert_type in rule.alert_types) and (
        not rule.namespaces or namespace in rule.namespaces
    )


def fits_labels(skill: SkillPlan, labels: Mapping[str, frozenset[str]]) -> bool:
    """Whether an alert names all labels that a skill requires.

    Args:
        skill: as planned.
        labels: values by name of the labels that the text of the alert names.
    """
    return all(value in labels.get(name, ()) for name, value in skill.workload_labels)


def with_skills(plan: Plan, skills: tuple[SkillPlan, ...]) -> Plan:
    """Returns a plan with some of its skills, which its agents then use.

    Args:
        plan: the plan.
        skills: those that stay, with their texts.
    """
    kept = {(skill.ref.namespace, skill.name) for skill in skills}

    def agent(one: AgentPlan) -> AgentPlan:
        changes: dict[str, object] = {}
        used = tuple(use for use in one.skills if (use.namespace, use.name) in kept)
        if used != one.skills:
            changes["skills"] = used
        if (delegation := one.delegation) is not None:
            subs = tuple(sub.model_copy(update={"agent": agent(sub.agent)}) for sub in delegation.agents)
            changes["delegation"] = delegation.model_copy(update={"agents": subs})
        return one.model_copy(update=changes) if changes else one

    stages = tuple(stage.with_agents(agent) for stage in plan.stages)
    chat = None if plan.chat is None else agent(plan.chat)
    return plan.model_copy(update={"stages": stages, "chat": chat, "skills": skills})


def text_digest(text: str) -> str:
    """Computes the digest of the text of a skill: SHA-256, as hex."""
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()


def with_text(skill: SkillPlan, text: str) -> SkillPlan:
    """Returns a skill with its text, without control characters.

    Args:
        skill: as planned.
        text: as its source has it.
    """
    return skill.model_copy(update={"text": clean(text), "digest": text_digest(text)})


def planned_skill(skill: Skill) -> SkillPlan:
    """Returns a skill as a plan has it; with its text, if that is in the object."""
    spec, source, git = skill.spec, skill.spec.config_map_key_ref, skill.spec.git
    labels = spec.applies_to.workload_labels if spec.applies_to is not None else {}
    plan = SkillPlan(
        ref=object_ref(skill),
        description=spec.description,
        config_map=ConfigMapKey(namespace=skill.metadata.namespace, name=source.name, key=source.key)
        if source is not None
        else None,
        git=GitFilePlan(url=git.url, commit=git.commit, path=git.path) if git is not None else None,
        allowed_tools=spec.allowed_tools,
        workload_labels=tuple(sorted(labels.items())),
    )
    return plan if spec.body is None else with_text(plan, spec.body)
