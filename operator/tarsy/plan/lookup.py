"""Resolves the names in fields, and reports those that do not exist or do not fit.

Decision: one object gathers errors and the objects used while references are followed; a lookup that fails answers
None and the walk goes on, which is how all errors come at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import TypeVar

from tarsy.plan.builtin import (
    BACKENDS,
    NATIVE_TOOLS,
    SYNTHESIS_STRATEGIES,
    runs_on,
    strategies_of,
)
from tarsy.plan.catalog import Catalog
from tarsy.plan.errors import FieldPath, PlanError
from tarsy.plan.model import ObjectRef, Strategy
from tarsy.plan.offered import offered_tools
from tarsy.plan.policy import ToolPolicy, names, stricter
from tarsy.plan.provider_types import provider_type
from tarsy.plan.scope import Shareable, admits, scope_refusal
from tarsy.resources.meta import AnyResource
from tarsy.resources.v1alpha1.common import McpSelection
from tarsy.resources.v1alpha1.llm_provider import LLMProvider
from tarsy.resources.v1alpha1.mcp_server import MCPServer
from tarsy.resources.v1alpha1.stage import Stage

_R = TypeVar("_R", bound=AnyResource)
_S = TypeVar("_S", bound=Shareable)


class Lookup:
    """Follows references through a catalog.

    `found` are the objects that were found, each with the first field that names it. `unchosen` is the error of an
    agent for which no field chooses a provider.
    """

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.errors: dict[PlanError, None] = {}
        self.left_out: dict[str, None] = {}
        self.unchosen: PlanError | None = None
        self.found: dict[ObjectRef, tuple[AnyResource, FieldPath]] = {}
        self._used: dict[tuple[str, str, str], ObjectRef] = {}

    def report(self, at: FieldPath, message: str) -> PlanError:
        """Notes a mistake; the same one twice is one."""
        error = at.error(message)
        self.errors[error] = None
        return error

    def note(self, obj: AnyResource, at: FieldPath) -> None:
        """Notes the field that names an object; the first one stays."""
        self.found.setdefault(object_ref(obj), (obj, at))

    def leave_out(self, sentence: str) -> None:
        """Notes a setting that the rights of another namespace keep out of the run; the same one twice is one."""
        self.left_out[sentence] = None

    def use(self, obj: AnyResource) -> ObjectRef:
        """Notes an object that the plan comes from."""
        ref = object_ref(obj)
        return self._used.setdefault((ref.kind, ref.namespace, ref.name), ref)

    @property
    def used(self) -> tuple[ObjectRef, ...]:
        """The objects used, by kind, namespace and name."""
        return tuple(ref for _, ref in sorted(self._used.items()))

    def named(self, kind: type[_R], namespace: str, name: str, at: FieldPath) -> _R | None:
        """Returns the object that a field names; reports one that does not exist.

        Args:
            kind: its class.
            namespace: where it must be.
            name: its name.
            at: the field that names it.
        """
        found = self.catalog.get(kind, namespace, name)
        if found is None:
            self._missing(kind, (namespace,), name, at)
        else:
            self.note(found, at)
        return found

    def shared(self, kind: type[_S], namespaces: Sequence[str], name: str, at: FieldPath) -> _S | None:
        """Returns the object that a run names; reports one that does not exist or does not admit the run's namespace.

        Args:
            kind: its class.
            namespaces: where it is looked up, in order; the first is the run's own.
            name: its name.
            at: the field that names it.
        """
        home = namespaces[0]
        for namespace in namespaces:
            found = self.catalog.get(kind, namespace, name)
            if found is not None:
                self.note(found, at)
                return found if self.admitted(found, home, at) else None
        self._missing(kind, namespaces, name, at)
        return None

    def admitted(self, obj: Shareable, namespace: str, at: FieldPath) -> bool:
        """Whether an object may be used from a namespace; reports when it may not.

        Args:
            obj: the object.
            namespace: the run's.
            at: the field that names it.
        """
        if admits(obj, namespace, self.catalog.namespace_labels(namespace)):
            return True
        self.report(at, scope_refusal(obj, namespace))
        return False

    def _missing(self, kind: type[AnyResource], namespaces: Sequence[str], name: str, at: FieldPath) -> None:
        if (place := next((it for it in namespaces if self.catalog.is_invalid(kind, it, name)), None)) is not None:
            self.report(at, f"{kind.KIND} {place}/{name} is not valid; see its condition Ready")
            return
        there = sorted({obj.metadata.name for space in namespaces for obj in self.catalog.list(kind, space)})
        close = get_close_matches(name, there, n=1)
        hint = f"did you mean {close[0]}? Else create it" if close else "create it"
        where = " or ".join(namespaces)
        self.report(at, f"there is no {kind.KIND} {name} in namespace {where}; {hint}, or name another")

    def tools_exist(
        self, server: MCPServer, selection: McpSelection, at: FieldPath, policy: ToolPolicy = ToolPolicy.ALL
    ) -> None:
        """Reports selected tools that the server's lists or a policy exclude, or that its status does not contain.

        Args:
            server: the server.
            selection: the tools that are selected.
            at: its field.
            policy: the agent's; All where no agent is known yet.
        """
        tools, chosen = server.spec.tools, selection.tools or ()
        denied = [tool for tool in chosen if names(tools.deny, tool)]
        if denied:
            self.report(at / "tools", f"{server} denies {', '.join(denied)} (spec.tools.deny); leave them out")
        allow = tools.allow
        unknown = [tool for tool in chosen if allow is not None and not names(allow, tool) and tool not in denied]
        if unknown:
            self.report(
                at / "tools", f"{server} does not allow {', '.join(unknown)} (spec.tools.allow); leave them out"
            )
        self._tools_are_offered(server, [tool for tool in chosen if tool not in denied + unknown], at)
        if stricter(server.spec.tool_policy, policy) is not ToolPolicy.READ_ONLY:
            return
        writing = [tool for tool in chosen if names(tools.destructive, tool) or not _may_read(server, tool)]
        if writing := [tool for tool in writing if tool not in denied and tool not in unknown]:
            whose = "its" if stricter(server.spec.tool_policy) is ToolPolicy.READ_ONLY else "the agent's"
            self.report(
                at / "tools",
                f"{', '.join(writing)} of {server} may make changes, and {whose} toolPolicy is ReadOnly; leave "
                "them out, or list read-only tools in its spec.tools.readOnly, or set toolPolicy: Approve or "
                "All on it and on the agent",
            )

    def _tools_are_offered(self, server: MCPServer, chosen: Sequence[str], at: FieldPath) -> None:
        offered = offered_tools(server)
        absent = [tool for tool in chosen if offered is not None and tool not in offered]
        if offered is None or not absent:
            return
        close = get_close_matches(absent[0], sorted(offered), n=1)
        hint = f"did you mean {close[0]}? Else leave" if close else "leave"
        them = "it" if len(absent) == 1 else "them"
        self.report(
            at / "tools",
            f"{server} has no tool {', '.join(absent)}; {hint} {them} out, or update the server (its status.tools "
            "lists what it offers)",
        )

    def joins(self, strategy: Strategy, at: FieldPath) -> bool:
        """Whether a synthesis can be done with a strategy; reports when it cannot."""
        if strategy in SYNTHESIS_STRATEGIES:
            return True
        usable = ", ".join(sorted(SYNTHESIS_STRATEGIES))
        self.report(at, f"strategy {strategy} cannot merge the results of several agents; use {usable}")
        return False

    def runs_on(self, strategy: Strategy, provider: LLMProvider, at: FieldPath) -> None:
        """Reports a strategy that the provider's type does not support.

        Args:
            strategy: of the agent.
            provider: of the agent.
            at: the field that sets the strategy.
        """
        if runs_on(strategy, provider.spec.type):
            return
        usable = ", ".join(strategies_of(provider.spec.type, strategy))
        self.report(
            at,
            f"strategy {strategy} needs the backend {BACKENDS[strategy]}, which {provider} of type "
            f"{provider.spec.type} does not support; use {usable}, or an LLMProvider of another type",
        )

    def native_tools_exist(self, provider: LLMProvider) -> None:
        """Reports native tools that a provider enables and its type does not offer."""
        kind, wishes = provider.spec.type, provider.spec.native_tools
        if wishes is None or provider_type(kind).has_native_tools:
            return
        for tool, field in NATIVE_TOOLS.items():
            if getattr(wishes, tool):
                self.report(
                    FieldPath.of(provider) / "nativeTools" / field, f"type {kind} has no native tools; leave it out"
                )

    def thinking_fits(self, provider: LLMProvider) -> None:
        """Reports a measure of thinking that the model does not accept."""
        kind, model, wish = provider.spec.type, provider.spec.model, provider.spec.thinking
        if wish is None:
            return
        usable = provider_type(kind).thinking_measures(model)
        for field in wish.to_dict():
            if field not in usable:
                remedy = f"use {' or '.join(usable)} instead, or leave it out" if usable else "leave it out"
                at = FieldPath.of(provider) / "thinking" / field
                self.report(at, f"model {model} of type {kind} does not support thinking.{field}; {remedy}")

    def stage_fits(self, stage: Stage, at: FieldPath) -> None:
        """Reports replicas of several agents, and agents of one stage with the same name."""
        if stage.replicas > 1 and len(stage.agents) > 1:
            self.report(at / "replicas", "replicas above 1 need exactly one agent; list agents, or repeat one of them")
        seen: set[str] = set()
        for index, agent in enumerate(stage.agents):
            name = agent.display_name or agent.name
            if name in seen:
                field = "name" if agent.display_name is None else "displayName"
                self.report(
                    (at / "agents")[index] / field,
                    f"another agent of stage {stage.name} is also called {name}; set a displayName of its own here",
                )
            seen.add(name)


def object_ref(obj: AnyResource) -> ObjectRef:
    """Returns the reference of a plan to an object."""
    meta = obj.metadata
    return ObjectRef(kind=obj.KIND, namespace=meta.namespace, name=meta.name, uid=meta.uid, generation=meta.generation)


def _may_read(server: MCPServer, tool: str) -> bool:
    """Whether a tool is known to only read, or the server's word for it counts."""
    return server.spec.trust_annotations or names(server.spec.tools.read_only, tool)
