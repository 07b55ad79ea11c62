"""Enforces ValidatingAdmissionPolicies with their bindings and parameters.

kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy; a failed validation with the action Deny
refuses, with Warn it warns; Audit has no log to go to here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from embedded_kubeapi.admission.chain import Review
from embedded_kubeapi.admission.expressions import BINDINGS, POLICIES
from embedded_kubeapi.admission.matching import EXEMPT_FROM_POLICIES, VARIABLES, concerns, scope_of, unmet
from embedded_kubeapi.call import Authorizer
from embedded_kubeapi.cel import CEL_ERRORS, CelError, compile_program
from embedded_kubeapi.cel.budget import PER_OBJECT, CostBudget
from embedded_kubeapi.errors import ApiError, forbidden
from embedded_kubeapi.objects import Obj
from embedded_kubeapi.registry import Registry
from embedded_kubeapi.selectors import matches_label_selector
from embedded_kubeapi.store import Store

_CODES = {"Unauthorized": 401, "Forbidden": 403, "Invalid": 422, "RequestEntityTooLarge": 413}


class Policies:
    """Enforces the policies in the store."""

    def __init__(self, store: Store, registry: Registry, authorizer: Authorizer) -> None:
        self._store = store
        self._registry = registry
        self._authorizer = authorizer

    async def mutate(self, review: Review) -> Obj | None:
        """Returns the object unchanged."""
        return review.obj

    async def validate(self, review: Review) -> None:
        """Refuses or warns according to the policies.

        Raises:
            ApiError: a policy denies the write.
        """
        if review.resource.key in EXEMPT_FROM_POLICIES:
            return
        bindings = self._store.objects(BINDINGS)
        for binding in bindings:
            policy = self._store.get(POLICIES, None, binding["spec"]["policyName"])
            if policy is not None and self._bound(review, policy, binding):
                for params in self._parameters(review, policy, binding):
                    self._judge(review, policy, binding, params)

    def _bound(self, review: Review, policy: Obj, binding: Obj) -> bool:
        constraints = policy["spec"].get("matchConstraints") or {}
        narrowed = binding["spec"].get("matchResources") or {}
        rules = narrowed.get("resourceRules")
        return concerns(review, constraints.get("resourceRules") or [], constraints, self._store) and concerns(
            review, rules or constraints.get("resourceRules") or [], narrowed, self._store
        )

    def _parameters(self, review: Review, policy: Obj, binding: Obj) -> Iterator[Obj | None]:
        kind, reference = policy["spec"].get("paramKind"), binding["spec"].get("paramRef")
        if not kind or not reference:
            yield None
            return
        resource = self._registry.by_kind(kind["apiVersion"], kind["kind"])
        found: list[Obj] = []
        if resource is not None:
            namespace = (reference.get("namespace") or review.namespace) if resource.namespaced else None
            for obj in self._store.objects(resource.key, namespace):
                named = reference.get("name") == obj["metadata"]["name"]
                if named or matches_label_selector(reference.get("selector"), obj["metadata"].get("labels") or {}):
                    found.append(obj)
        if not found and reference.get("parameterNotFoundAction") != "Allow":
            raise self._refusal(
                review, policy, binding, "no params found for policy binding with `Deny` parameterNotFoundAction", ""
            )
        yield from found

    def _judge(self, review: Review, policy: Obj, binding: Obj, params: Obj | None) -> None:
        spec = policy["spec"]
        scope = {**scope_of(review, self._store, self._authorizer), "params": params}
        budget = CostBudget(PER_OBJECT)
        scope["variables"] = _Variables(spec.get("variables") or [], scope, budget)
        closed = spec.get("failurePolicy", "Fail") == "Fail"
        try:
            if unmet(spec.get("matchConditions") or [], scope, budget):
                return
        except CEL_ERRORS as error:
            if closed:
                raise self._refusal(review, policy, binding, str(error), "") from None
            return
        for validation in spec.get("validations") or ():
            text = validation["expression"]
            message = validation.get("message") or f"failed expression: {text}"
            try:
                if compile_program(text, VARIABLES).evaluate(scope, budget.part()) is True:
                    continue
                message = _message(validation, scope, budget) or message
            except CEL_ERRORS as error:
                if not closed:
                    continue
                message = f"expression '{text}' resulted in error: {error}"
            self._act(review, policy, binding, message, validation.get("reason") or "")

    def _act(self, review: Review, policy: Obj, binding: Obj, message: str, reason: str) -> None:
        actions = binding["spec"].get("validationActions") or ["Deny"]
        if "Warn" in actions:
            names = f"'{policy['metadata']['name']}' with binding '{binding['metadata']['name']}'"
            review.call.warn(f"Validation failed for ValidatingAdmissionPolicy {names}: {message}")
        if "Deny" in actions:
            raise self._refusal(review, policy, binding, message, reason)

    def _refusal(self, review: Review, policy: Obj, binding: Obj, message: str, reason: str) -> ApiError:
        names = f"'{policy['metadata']['name']}' with binding '{binding['metadata']['name']}'"
        text = f"ValidatingAdmissionPolicy {names} denied request: {message}"
        error = forbidden(review.resource.group, review.resource.plural, review.name, text)
        reason = reason or "Invalid"
        details = {**(error.details or {}), "causes": [{"message": text}]}
        return ApiError(_CODES.get(reason, 422), reason, error.message, details)


class _Variables:
    """`variables.NAME`, each evaluated on first use."""

    def __init__(self, definitions: list[Obj], scope: dict[str, Any], budget: CostBudget) -> None:
        self._definitions = {definition["name"]: definition["expression"] for definition in definitions}
        self._scope = scope
        self._budget = budget
        self._known: dict[str, Any] = {}

    def cel_select(self, field: str, missing: bool | None) -> Any:
        """The value of a variable."""
        if missing is not None:
            return field in self._definitions
        if field not in self._definitions:
            raise CelError(f"no such key: {field}")
        if field not in self._known:
            scope = {**self._scope, "variables": self}
            program = compile_program(self._definitions[field], VARIABLES)
            self._known[field] = program.evaluate(scope, self._budget.part())
        return self._known[field]


def _message(validation: Obj, scope: dict[str, Any], budget: CostBudget) -> str:
    text = validation.get("messageExpression")
    if not text:
        return ""
    try:
        found = compile_program(text, VARIABLES).evaluate(scope, budget.part())
    except CEL_ERRORS:
        return ""
    return found if isinstance(found, str) else ""
