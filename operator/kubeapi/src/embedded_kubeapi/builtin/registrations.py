"""Sets defaults of webhook configurations and admission policies (API reference, admissionregistration.k8s.io/v1).

Clients rely on them: an API server that reads policies from here refuses every write where a selector is missing.
"""

from __future__ import annotations

from embedded_kubeapi.objects import Obj

_HTTPS = 443
_WEBHOOK_SECONDS = 10


def complete_mutating_configuration(obj: Obj, _: Obj | None) -> None:
    """Fills the webhooks of a MutatingWebhookConfiguration."""
    for webhook in obj.get("webhooks") or ():
        _complete_webhook(webhook)
        webhook.setdefault("reinvocationPolicy", "Never")


def complete_validating_configuration(obj: Obj, _: Obj | None) -> None:
    """Fills the webhooks of a ValidatingWebhookConfiguration."""
    for webhook in obj.get("webhooks") or ():
        _complete_webhook(webhook)


def complete_policy(obj: Obj, _: Obj | None) -> None:
    """Fills a ValidatingAdmissionPolicy."""
    spec = obj.get("spec") or {}
    spec.setdefault("failurePolicy", "Fail")
    _complete_matching(spec.get("matchConstraints"))


def complete_policy_binding(obj: Obj, _: Obj | None) -> None:
    """Fills a ValidatingAdmissionPolicyBinding."""
    _complete_matching((obj.get("spec") or {}).get("matchResources"))


def _complete_webhook(webhook: Obj) -> None:
    webhook.setdefault("failurePolicy", "Fail")
    webhook.setdefault("timeoutSeconds", _WEBHOOK_SECONDS)
    _complete_selectors(webhook, webhook.get("rules"))
    service = (webhook.get("clientConfig") or {}).get("service")
    if service:
        service.setdefault("port", _HTTPS)


def _complete_matching(matching: Obj | None) -> None:
    if matching is not None:
        rules = [*(matching.get("resourceRules") or ()), *(matching.get("excludeResourceRules") or ())]
        _complete_selectors(matching, rules)


def _complete_selectors(where: Obj, rules: list[Obj] | None) -> None:
    where.setdefault("matchPolicy", "Equivalent")
    where.setdefault("namespaceSelector", {})
    where.setdefault("objectSelector", {})
    for rule in rules or ():
        rule.setdefault("scope", "*")
