"""Matches webhooks and policies with writes by their rules, selectors and conditions."""

from __future__ import annotations

from typing import Any

from embedded_kubeapi.admission.chain import Review
from embedded_kubeapi.call import Attributes, Authorizer, Caller, Decision
from embedded_kubeapi.cel import CelCostError, CelError, compile_program
from embedded_kubeapi.cel.budget import CostBudget
from embedded_kubeapi.objects import Obj, new_uid
from embedded_kubeapi.selectors import matches_label_selector
from embedded_kubeapi.store import Store

VARIABLES = ("object", "oldObject", "request", "params", "namespaceObject", "variables", "authorizer")
_GROUP = "admissionregistration.k8s.io"
EXEMPT_FROM_POLICIES = frozenset(
    {
        (_GROUP, kind + suffix)
        for kind in ("validatingadmissionpolic", "mutatingadmissionpolic")
        for suffix in ("ies", "ybindings")
    }
)
"""Kinds (group and plural) exempt from policies, so that a bad policy can always be removed."""

EXEMPT_FROM_WEBHOOKS = EXEMPT_FROM_POLICIES | {
    (_GROUP, "mutatingwebhookconfigurations"),
    (_GROUP, "validatingwebhookconfigurations"),
}
"""Kinds (group and plural) exempt from webhooks."""


def concerns(review: Review, rules: list[Obj], spec: Obj, store: Store) -> bool:
    """Reports whether rules and selectors of a webhook (or of matchConstraints) match a write."""
    if not any(_rule_matches(rule, review) for rule in rules):
        return False
    if any(_rule_matches(rule, review) for rule in spec.get("excludeResourceRules") or ()):
        return False
    selector, labels = spec.get("namespaceSelector"), _namespace_labels(review, store)
    if selector and labels is not None and not matches_label_selector(selector, labels):
        return False
    selector = spec.get("objectSelector")
    if selector:
        both = [obj for obj in (review.obj, review.old) if obj is not None]
        if not any(matches_label_selector(selector, obj["metadata"].get("labels") or {}) for obj in both):
            return False
    return True


def _rule_matches(rule: Obj, review: Review) -> bool:
    resource = review.resource
    for wanted, found in (
        ("operations", review.operation),
        ("apiGroups", resource.group),
        ("apiVersions", resource.version),
    ):
        if "*" not in (rule.get(wanted) or ()) and found not in (rule.get(wanted) or ()):
            return False
    scope = rule.get("scope") or "*"
    if scope != "*" and (scope == "Namespaced") != resource.namespaced:
        return False
    names = rule.get("resourceNames")
    return (not names or review.name in names) and any(
        _resource_matches(p, review) for p in rule.get("resources") or ()
    )


def _resource_matches(pattern: str, review: Review) -> bool:
    plural, _, sub = pattern.partition("/")
    return plural in ("*", review.resource.plural) and (sub == review.subresource or (sub == "*" and "/" in pattern))


def _namespace_labels(review: Review, store: Store) -> dict[str, str] | None:
    if review.resource.key == ("", "namespaces"):
        namespace: Obj | None = review.obj or review.old
    elif review.namespace:
        namespace = store.get(("", "namespaces"), None, review.namespace)
    else:
        return None
    return (namespace or {}).get("metadata", {}).get("labels") or {}


def request_of(review: Review) -> Obj:
    """Returns the request as AdmissionReviews and expressions see it."""
    resource = review.resource
    kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    place = {"group": resource.group, "version": resource.version, "resource": resource.plural}
    found: Obj = {
        "uid": new_uid(),
        "kind": kind,
        "resource": place,
        "requestKind": kind,
        "requestResource": place,
        "name": review.name,
        "operation": review.operation,
        "userInfo": review.call.caller.user_info(),
        "dryRun": review.call.dry_run,
        "options": review.options,
    }
    if review.namespace:
        found["namespace"] = review.namespace
    if review.subresource:
        found |= {"subResource": review.subresource, "requestSubResource": review.subresource}
    return found


def scope_of(review: Review, store: Store, authorizer: Authorizer) -> dict[str, Any]:
    """Returns the variables of expressions about a write; `authorizer` answers the checks that they make."""
    namespace = store.get(("", "namespaces"), None, review.namespace) if review.namespace else None
    return {
        "object": review.obj,
        "oldObject": review.old,
        "request": request_of(review),
        "params": None,
        "namespaceObject": namespace,
        "variables": {},
        "authorizer": AskAuthorizer(authorizer, review.call.caller, review),
    }


def unmet(conditions: list[Obj], scope: dict[str, Any], budget: CostBudget) -> bool:
    """Reports whether one of the `conditions` (matchConditions) excludes a write.

    Raises:
        CelError, CelCostError: no condition says so, and one has no answer.
    """
    error: CelError | CelCostError | None = None
    for condition in conditions:
        try:
            if compile_program(condition["expression"], VARIABLES).evaluate(scope, budget.part()) is not True:
                return True
        except (CelError, CelCostError) as caught:
            error = caught
    if error is not None:
        raise error
    return False


class AskAuthorizer:
    """`authorizer` in expressions: `.group(g).resource(r).namespace(n).check(verb).allowed()`."""

    def __init__(
        self, authorizer: Authorizer, caller: Caller, review: Review | None = None, about: dict[str, str] | None = None
    ) -> None:
        self._authorizer = authorizer
        self._caller = caller
        self._review = review
        self._about = about or {}

    def cel_select(self, field: str, missing: bool | None) -> Any:
        """`authorizer.requestResource`."""
        if field != "requestResource" or self._review is None:
            raise CelError(f"no such key: {field}")
        resource = self._review.resource
        about = {"group": resource.group, "version": resource.version, "resource": resource.plural,
                 "subresource": self._review.subresource, "namespace": self._review.namespace,
                 "name": self._review.name}  # fmt: skip
        return AskAuthorizer(self._authorizer, self._caller, None, about)

    def cel_call(self, name: str, arguments: tuple[Any, ...]) -> Any:
        """Adds one part of the request to check."""
        if name == "serviceAccount":
            namespace, account = arguments
            groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")
            caller = Caller(f"system:serviceaccount:{namespace}:{account}", groups)
            return AskAuthorizer(self._authorizer, caller)
        if name == "check":
            return Answer(self._authorizer.decide(self._caller, Attributes(str(arguments[0]), **self._about)))
        if name in ("group", "resource", "subresource", "namespace", "name", "path"):
            return AskAuthorizer(self._authorizer, self._caller, None, {**self._about, name: str(arguments[0])})
        raise CelError(f"no such overload: authorizer.{name}()")


class Answer:
    """The result of `check`."""

    def __init__(self, decision: Decision) -> None:
        self._decision = decision

    def cel_call(self, name: str, arguments: tuple[Any, ...]) -> Any:
        """`allowed()`, `reason()` and the like."""
        answers = {"allowed": self._decision.allowed, "reason": self._decision.reason, "errored": False, "error": ""}
        if name not in answers:
            raise CelError(f"no such overload: decision.{name}()")
        return answers[name]
