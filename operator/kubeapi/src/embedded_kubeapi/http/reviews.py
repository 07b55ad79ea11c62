"""Serves the review kinds, which are not stored: access reviews, token reviews and SelfSubjectReview."""

from __future__ import annotations

from typing import Any

from embedded_kubeapi.auth.rbac import Rbac
from embedded_kubeapi.auth.tokens import ISSUER, TokenIssuer
from embedded_kubeapi.call import ADMINS, Attributes, Caller
from embedded_kubeapi.errors import bad_request, invalid, wrong
from embedded_kubeapi.objects import Obj, now
from embedded_kubeapi.resource import Resource

_EVERYTHING = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
_EVERY_PATH = {"verbs": ["*"], "nonResourceURLs": ["*"]}


class Reviews:
    """Answers what is posted to authentication.k8s.io and authorization.k8s.io."""

    def __init__(self, rbac: Rbac, tokens: TokenIssuer) -> None:
        self._rbac = rbac
        self._tokens = tokens

    def answer(self, resource: Resource, body: Any, caller: Caller, namespace: str | None) -> Obj:
        """Answers a review; `namespace` is the one in the URL of a local review.

        Raises:
            ApiError: 400 or 422, it asks nothing that can be answered.
        """
        if not isinstance(body, dict):
            raise bad_request(f"a {resource.kind} is needed")
        spec = body.get("spec") or {}
        match resource.kind:
            case "SelfSubjectReview":
                status: Obj = {"userInfo": caller.user_info()}
            case "SelfSubjectAccessReview":
                status = self._access(resource, spec, caller)
            case "SubjectAccessReview" | "LocalSubjectAccessReview":
                status = self._access(resource, spec, _subject(resource, spec, namespace))
            case "SelfSubjectRulesReview":
                status = self._rules(caller, spec.get("namespace") or "default")
            case _:
                status = self._token(spec)
        meta = {"creationTimestamp": None, **(body.get("metadata") or {})}
        if resource.kind == "SelfSubjectReview":
            meta["creationTimestamp"] = now()
        return {**body, "apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta, "status": status}

    def _access(self, resource: Resource, spec: Obj, caller: Caller) -> Obj:
        about, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
        if bool(about) == bool(path):
            detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
            raise invalid(resource.group, resource.kind, "", [wrong("spec.resourceAttributes", about, detail)])
        if path:
            attributes = Attributes(path.get("verb", ""), path=path.get("path", ""))
        else:
            fields = ("verb", "group", "version", "resource", "subresource", "namespace", "name")
            attributes = Attributes(**{field: str((about or {}).get(field) or "") for field in fields})
        decision = self._rbac.decide(caller, attributes)
        return {"allowed": decision.allowed} | ({"reason": decision.reason} if decision.reason else {})

    def _rules(self, caller: Caller, namespace: str) -> Obj:
        resources: list[Obj] = [_EVERYTHING] if ADMINS in caller.groups else []
        paths: list[Obj] = [_EVERY_PATH] if ADMINS in caller.groups else []
        for grant in self._rbac.grants(caller, namespace):
            rule = grant.rule
            if rule.get("resources"):
                resources.append({key: rule[key] for key in rule if key != "nonResourceURLs"})
            if rule.get("nonResourceURLs"):
                paths.append({"verbs": rule["verbs"], "nonResourceURLs": rule["nonResourceURLs"]})
        return {"resourceRules": resources, "nonResourceRules": paths, "incomplete": False}

    def _token(self, spec: Obj) -> Obj:
        audiences = tuple(spec.get("audiences") or (ISSUER,))
        verified = self._tokens.verify(str(spec.get("token") or ""), audiences)
        if verified is None:
            return {"user": {}, "error": "[invalid bearer token, no token of this server for these audiences]"}
        return {"authenticated": True, "user": verified.caller.user_info(), "audiences": list(verified.audiences)}


def _subject(resource: Resource, spec: Obj, namespace: str | None) -> Caller:
    about = spec.get("resourceAttributes") or {}
    if resource.kind.startswith("Local") and about.get("namespace") != namespace:
        detail = "must match metadata.namespace"
        raise invalid(
            resource.group,
            resource.kind,
            "",
            [wrong("spec.resourceAttributes.namespace", about.get("namespace"), detail)],
        )
    if not spec.get("user") and not spec.get("groups"):
        raise invalid(
            resource.group,
            resource.kind,
            "",
            [wrong("spec.user", "", "at least one of user or group must be specified")],
        )
    extra = {key: tuple(values) for key, values in (spec.get("extra") or {}).items()}
    return Caller(spec.get("user") or "", tuple(spec.get("groups") or ()), spec.get("uid") or "", extra)
