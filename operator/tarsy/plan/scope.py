"""Decides from which namespaces an object may be used.

Decision: a grant is needed where a reference crosses namespaces, and only there. A library Chain that admits a
namespace brings what it names in the library along, so its servers and keys need not be open to that namespace
by themselves; permission to use them is checked on the same objects.
"""

from __future__ import annotations

from collections.abc import Mapping

from tarsy.resources.v1alpha1.agent import Agent
from tarsy.resources.v1alpha1.chain import Chain
from tarsy.resources.v1alpha1.llm_provider import LLMProvider
from tarsy.resources.v1alpha1.mcp_server import MCPServer
from tarsy.resources.v1alpha1.namespace_grant import AllowedNamespaces, LabelRequirement, LabelSelector
from tarsy.resources.v1alpha1.skill import Skill

Shareable = Agent | Chain | LLMProvider | MCPServer | Skill


def admits(obj: Shareable, namespace: str, labels: Mapping[str, str]) -> bool:
    """Whether `obj` may be used from `namespace`, whose labels are `labels`.

    Its own namespace always may; of others, those that `allowedNamespaces` lets in: none when it is not set.
    """
    if obj.metadata.namespace == namespace:
        return True
    return lets_in(obj.spec.allowed_namespaces, labels)


def lets_in(allowed: AllowedNamespaces | None, labels: Mapping[str, str]) -> bool:
    """Whether a grant covers a namespace with these labels; one that is not set covers none."""
    if allowed is None or allowed.from_ == "None":
        return False
    if allowed.from_ == "All":
        return True
    return allowed.selector is not None and selects(allowed.selector, labels)


def selects(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
    """Whether a selector matches labels, as Kubernetes matches them: an empty one matches everything."""
    return all(labels.get(key) == value for key, value in selector.match_labels.items()) and all(
        _meets(requirement, labels) for requirement in selector.match_expressions
    )


def _meets(requirement: LabelRequirement, labels: Mapping[str, str]) -> bool:
    match requirement.operator:
        case "In":
            return labels.get(requirement.key) in requirement.values
        case "NotIn":
            return labels.get(requirement.key) not in requirement.values
        case "Exists":
            return requirement.key in labels
        case "DoesNotExist":
            return requirement.key not in labels


def scope_refusal(obj: Shareable, namespace: str) -> str:
    """The sentence for an object that does not admit `namespace`."""
    return (
        f"{obj} may not be used from namespace {namespace}; allow that namespace in its spec.allowedNamespaces, "
        "or name an object of your own"
    )
