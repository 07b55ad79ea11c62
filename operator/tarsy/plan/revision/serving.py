"""Shows the objects of a serving revision as a catalog that runs are planned from, limited by the current objects.

Agents, Skills, and InvestigationDefaults of the revision's own namespaces, come from the revision only: one that was
created later is not part of it. MCPServers and LLMProviders that a run brings itself are the current ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from tarsy.plan.catalog import Catalog
from tarsy.plan.errors import FieldPath, PlanError
from tarsy.plan.revision import withdrawal
from tarsy.plan.revision.snapshot import Snapshot
from tarsy.resources.meta import AnyResource
from tarsy.resources.v1alpha1.agent import Agent
from tarsy.resources.v1alpha1.chain import Chain
from tarsy.resources.v1alpha1.investigation_defaults import InvestigationDefaults
from tarsy.resources.v1alpha1.llm_provider import LLMProvider
from tarsy.resources.v1alpha1.mcp_server import MCPServer
from tarsy.resources.v1alpha1.skill import Skill

_R = TypeVar("_R", bound=AnyResource)


class ServingCatalog:
    """A catalog of a revision's objects. Implements `tarsy.plan.catalog.Catalog`.

    Args:
        snapshot: the objects of the revision.
        current: the objects as they are now.

    `withdrawn` are rights of the revision that no other check of a plan finds withdrawn.
    """

    def __init__(self, snapshot: Snapshot, current: Catalog) -> None:
        self._snapshot = snapshot
        self._current = current
        self.withdrawn: dict[PlanError, None] = {}

    def chain(self, now: Chain) -> Chain:
        """Returns the Chain of the revision, limited by the current one."""
        kept = self._snapshot.chain
        return kept.model_copy(update={"spec": withdrawal.chain_spec(kept.spec, now.spec)})

    def get(self, kind: type[_R], namespace: str, name: str) -> _R | None:
        """Returns the object of the revision as the current one limits it; None where it was deleted.

        Args:
            kind: class of the object.
            namespace: namespace of the object.
            name: name of the object.
        """
        now = self._current.get(kind, namespace, name)
        kept = self._snapshot.objects.get((kind.KIND, namespace, name))
        if kept is None:
            return None if self._is_absent(kind, namespace) else now
        found = kept if now is None else self._limited(kept, now)
        if now is None and not isinstance(kept, InvestigationDefaults):  # defaults grant nothing
            return None
        return found if isinstance(found, kind) else None

    def list(self, kind: type[_R], namespace: str) -> Sequence[_R]:
        """Lists the current objects of a kind in a namespace; of Skills those of the revision that still exist."""
        listed = self._current.list(kind, namespace)
        if kind is not Skill:
            return listed
        kept = (self.get(kind, namespace, one.metadata.name) for one in listed)
        return [one for one in kept if one is not None]

    def namespace_labels(self, namespace: str) -> Mapping[str, str]:
        """Returns the current labels of a namespace."""
        return self._current.namespace_labels(namespace)

    def is_invalid(self, kind: type[AnyResource], namespace: str, name: str) -> bool:
        """Returns whether the current object is not valid.

        Args:
            kind: class of the object.
            namespace: namespace of the object.
            name: name of the object.
        """
        return self._current.is_invalid(kind, namespace, name)

    def _is_absent(self, kind: type[AnyResource], namespace: str) -> bool:
        return kind in (Agent, Skill) or (kind is InvestigationDefaults and namespace in self._snapshot.places)

    def _limited(self, kept: AnyResource, now: AnyResource) -> AnyResource:
        spec: object
        match kept, now:
            case Agent(), Agent():
                self._note_account(kept, now)
                spec = withdrawal.agent_spec(kept.spec, now.spec)
            case MCPServer(), MCPServer():
                spec = withdrawal.server_spec(kept.spec, now.spec)
            case LLMProvider(), LLMProvider():
                spec = withdrawal.provider_spec(kept.spec, now.spec)
            case Skill(), Skill():
                spec = kept.spec.model_copy(update={"allowed_namespaces": now.spec.allowed_namespaces})
            case InvestigationDefaults(), InvestigationDefaults():
                spec = withdrawal.defaults_spec(kept.spec, now.spec)
            case _:
                return kept
        return kept.model_copy(update={"spec": spec, "status": now.status})

    def _note_account(self, kept: Agent, now: Agent) -> None:
        account = kept.spec.service_account_name
        if account is not None and account != now.spec.service_account_name:
            at = FieldPath.of(now) / "serviceAccountName"
            said = now.spec.service_account_name or "not set"
            error = at.error(f"is {said}, but the tools of the serving revision act as {account}")
            self.withdrawn[error] = None
