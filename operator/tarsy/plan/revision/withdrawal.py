"""Merges an object of a serving revision with the current one: behaviour of the revision, rights of both.

A right that the current object does not grant any more is withdrawn at once; one that only the current object grants
waits for its revision to serve. Grants to namespaces and the binding to them, approved
tools, prices, and limits of concurrency belong to the current object alone.

Decision: of two lists of allowed tools the result contains only entries that both cover entirely. Two patterns that
merely overlap are dropped: rather one tool fewer than one that was not meant.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from tarsy.plan.policy import names, stricter
from tarsy.resources.v1alpha1.agent import AgentSpec
from tarsy.resources.v1alpha1.chain import ChainSpec, ChatSettings, PrecedentSettings
from tarsy.resources.v1alpha1.common import Budget, NativeTools
from tarsy.resources.v1alpha1.data_flow import DataFlow
from tarsy.resources.v1alpha1.investigation_defaults import InvestigationDefaultsSpec
from tarsy.resources.v1alpha1.llm_provider import LLMProviderSpec
from tarsy.resources.v1alpha1.masking import Masking
from tarsy.resources.v1alpha1.mcp_server import MCPServerSpec, ToolFilter

_T = TypeVar("_T")


def chain_spec(kept: ChainSpec, now: ChainSpec) -> ChainSpec:
    """Merges the spec of a Chain: `kept` is that of the revision, `now` the current one."""
    chat = kept.chat
    if now.chat is not None and not now.chat.enabled:
        chat = (chat or ChatSettings()).model_copy(update={"enabled": False})
    return kept.model_copy(
        update={
            "alert_types": now.alert_types,
            "notify": now.notify,
            "max_concurrent": now.max_concurrent,
            "allowed_namespaces": now.allowed_namespaces,
            "allowed_provider_namespaces": now.allowed_provider_namespaces,
            "promotion": now.promotion,
            "pre_approved": now.pre_approved,
            "precedents": _precedents(kept.precedents, now.precedents),
            "alert_tools": "Denied" if "Denied" in (kept.alert_tools, now.alert_tools) else "Allowed",
            "budget": lower(kept.budget, now.budget),
            "chat": chat,
        }
    )


def agent_spec(kept: AgentSpec, now: AgentSpec) -> AgentSpec:
    """Merges the spec of an Agent; see `chain_spec`."""
    return kept.model_copy(
        update={
            "tool_policy": stricter(kept.tool_policy, now.tool_policy).value,
            "native_tools": native_tools(kept.native_tools, now.native_tools),
            "allowed_namespaces": now.allowed_namespaces,
        }
    )


def server_spec(kept: MCPServerSpec, now: MCPServerSpec) -> MCPServerSpec:
    """Merges the spec of an MCPServer; see `chain_spec`. With the same URL it takes the current credentials."""
    old, new = kept.transport.http, now.transport.http
    same = old is not None and new is not None and old.url == new.url
    return kept.model_copy(
        update={
            "transport": now.transport if same else kept.transport,
            "tools": tool_filter(kept.tools, now.tools),
            "tool_policy": stricter(kept.tool_policy, now.tool_policy).value,
            "trust_annotations": kept.trust_annotations and now.trust_annotations,
            "repeatable_tools": covered_by_both(kept.repeatable_tools, now.repeatable_tools),
            "masking": either_masks(kept.masking, now.masking),
            "reach": now.reach,
            "pin": now.pin,
            "accepted_tools": now.accepted_tools,
            "approval": now.approval,
            "data_flow": either_protects(kept.data_flow, now.data_flow),
            "extraction": _union(now.extraction, kept.extraction),
            "allowed_namespaces": now.allowed_namespaces,
        }
    )


def provider_spec(kept: LLMProviderSpec, now: LLMProviderSpec) -> LLMProviderSpec:
    """Merges the spec of an LLMProvider; see `chain_spec`. With the same endpoint it takes the current key."""
    same = (kept.type, kept.base_url, kept.vertexai) == (now.type, now.base_url, now.vertexai)
    return kept.model_copy(
        update={
            "api_key_secret_ref": now.api_key_secret_ref if same else kept.api_key_secret_ref,
            "native_tools": native_tools(kept.native_tools, now.native_tools),
            "rates": now.rates if same and kept.model == now.model else kept.rates,
            "limits": now.limits,
            "allowed_namespaces": now.allowed_namespaces,
        }
    )


def defaults_spec(kept: InvestigationDefaultsSpec, now: InvestigationDefaultsSpec) -> InvestigationDefaultsSpec:
    """Merges the spec of InvestigationDefaults; see `chain_spec`."""
    return kept.model_copy(
        update={
            "runbook": now.runbook,
            "runbook_hosts": now.runbook_hosts,
            "alert_masking": now.alert_masking,
            "model_output_masking": now.model_output_masking,
            "acceptance_timeout_seconds": now.acceptance_timeout_seconds,
            "max_concurrent": now.max_concurrent,
            "budget": lower(kept.budget, now.budget),
            "allowed_precedent_namespaces": now.allowed_precedent_namespaces,
        }
    )


def _precedents(kept: PrecedentSettings | None, now: PrecedentSettings | None) -> PrecedentSettings | None:
    """Keeps the precedents of the revision where the current object has them too, in the narrower scope."""
    if kept is None or now is None or "Off" in (kept.use, now.use):
        return None
    return now if now.scope == "Namespace" else kept


def either_protects(kept: DataFlow | None, now: DataFlow | None) -> DataFlow | None:
    """Keeps what either object declares to leave, and what either declares sensitive."""
    if kept is None or now is None:
        return kept or now
    return DataFlow.model_construct(
        outbound_arguments=_union(kept.outbound_arguments, now.outbound_arguments),
        sensitive_tools=_union(kept.sensitive_tools, now.sensitive_tools),
    )


def tool_filter(kept: ToolFilter, now: ToolFilter) -> ToolFilter:
    """Keeps the tools that both filters offer; every tool that one of them denies is denied."""
    deny = _union(kept.deny, now.deny)
    allow = kept.allow if now.allow is None else now.allow if kept.allow is None else None
    if kept.allow is not None and now.allow is not None:
        allow = covered_by_both(kept.allow, now.allow)
        if not allow:  # an empty list would allow all
            allow, deny = kept.allow, _union(("*",), deny)
    return kept.model_copy(
        update={
            "allow": allow,
            "deny": deny,
            "read_only": covered_by_both(kept.read_only, now.read_only),
            "destructive": _union(kept.destructive, now.destructive),
        }
    )


def covered_by_both(kept: Iterable[str], now: Iterable[str]) -> tuple[str, ...]:
    """Returns the patterns of two lists that the other list covers entirely.

    A pattern covers another one where it matches it with `*` taken as a character, as no part of a pattern contains it.
    """
    one, other = tuple(kept), tuple(now)
    return _union((entry for entry in one if names(other, entry)), (entry for entry in other if names(one, entry)))


def native_tools(kept: NativeTools | None, now: NativeTools | None) -> NativeTools | None:
    """Switches off the native tools that the current object does not switch on any more."""
    if kept is None and now is None:
        return None
    merged: dict[str, bool | None] = {}
    for name in NativeTools.model_fields:
        was: bool | None = getattr(kept, name, None)
        current: bool | None = getattr(now, name, None)
        merged[name] = False if current is False or (was and not current) else was
    return NativeTools.model_validate(merged)


def lower(kept: Budget | None, now: Budget | None) -> Budget | None:
    """Takes the lower of two budgets, limit by limit."""
    if kept is None or now is None:
        return now or kept
    merged = {}
    for name in Budget.model_fields:
        set_ = [value for value in (getattr(kept, name), getattr(now, name)) if value is not None]
        merged[name] = min(set_, default=None)
    return Budget.model_validate(merged)


def either_masks(kept: Masking, now: Masking) -> Masking:
    """Masks what one of two settings masks."""
    on = [setting for setting in (kept, now) if setting.enabled]
    if len(on) < 2:
        return on[0] if on else now
    return now.model_copy(
        update={
            "pattern_groups": _union(kept.pattern_groups, now.pattern_groups),
            "patterns": _union(kept.patterns, now.patterns),
            "custom_patterns": _union(kept.custom_patterns, now.custom_patterns),
        }
    )


def _union(*lists: Iterable[_T]) -> tuple[_T, ...]:
    return tuple(dict.fromkeys(item for items in lists for item in items))
