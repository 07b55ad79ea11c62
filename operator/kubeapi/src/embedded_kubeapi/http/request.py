"""Parses a request: path, verb, query options and body."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import orjson
import yaml

from embedded_kubeapi.call import Attributes, Call, Caller
from embedded_kubeapi.errors import (
    ApiError,
    FieldError,
    bad_request,
    invalid,
    no_such_method,
    not_permitted,
    not_supported,
    too_long,
    unsupported_media,
    wrong,
)  # fmt: skip
from embedded_kubeapi.http.protobuf import MAGIC, decode

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch"}
# Below a namespace these are its own subresources, not kinds.
_OF_NAMESPACE = ("status", "finalize")
_OPTIONS = {"POST": "CreateOptions", "PUT": "UpdateOptions", "PATCH": "PatchOptions", "DELETE": "DeleteOptions"}
_POLICIES = ("Foreground", "Background", "Orphan")
_LONGEST_MANAGER = 128
BODIES = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf")
_VALIDATIONS: tuple[Literal["Strict"], Literal["Warn"], Literal["Ignore"]] = ("Strict", "Warn", "Ignore")


@dataclass(frozen=True)
class Target:
    """The target of a path; without `resource` for discovery and other paths."""

    group: str = ""
    version: str = ""
    namespace: str | None = None
    resource: str = ""
    name: str = ""
    subresource: str = ""
    rest: str = ""


def target_of(path: str) -> Target | None:
    """Parses a path under /api/v1 or /apis/GROUP/VERSION; returns None for other paths."""
    parts = [part for part in path.split("/") if part]
    if parts[:2] == ["api", "v1"]:
        group, version, rest = "", "v1", parts[2:]
    elif parts[:1] == ["apis"] and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    if not rest:
        return None
    namespace = None
    if rest[0] == "namespaces" and len(rest) > 2 and not (len(rest) == 3 and rest[2] in _OF_NAMESPACE):
        namespace, rest = rest[1], rest[2:]
    resource, name, subresource, *more = *rest, *[""] * max(0, 3 - len(rest))
    return Target(group, version, namespace, resource, name, subresource, "/".join(more))


def verb_of(method: str, target: Target, watch: bool) -> str:
    """Returns the RBAC verb of an HTTP `method` on a target; `watch` is set for a watch request.

    Raises:
        ApiError: 405.
    """
    if method in ("GET", "HEAD"):
        return "watch" if watch else "get" if target.name else "list"
    if method == "DELETE":
        return "delete" if target.name else "deletecollection"
    if method not in _VERBS:
        raise no_such_method()
    return _VERBS[method]


def attributes_of(verb: str, target: Target) -> Attributes:
    """Returns the attributes of the request for the authorizer."""
    namespace = target.namespace or ""
    if target.resource == "namespaces" and not target.group:
        namespace = target.name
    return Attributes(
        verb, target.group, target.version, target.resource, target.subresource, namespace, target.name
    )  # fmt: skip


def is_true(query: Mapping[str, str], name: str) -> bool:
    """Reports whether a flag of the query is set."""
    return query.get(name, "") in ("true", "1", "True", "t", "T")


def call_of(caller: Caller, query: Mapping[str, str], user_agent: str, method: str, apply: bool) -> Call:
    """Returns the options of a write; `apply` is set for server-side apply.

    Raises:
        ApiError: 422, an option has a value that it cannot have.
    """
    dry_run, validation = query.get("dryRun", ""), query.get("fieldValidation") or "Warn"
    errors = []
    if dry_run not in ("", "All"):
        errors.append(
            FieldError("FieldValueNotSupported", "dryRun", f'Unsupported value: "{dry_run}": supported values: "All"')
        )
    if validation not in _VALIDATIONS:
        text = f'Unsupported value: "{validation}": supported values: "", "Ignore", "Strict", "Warn"'
        errors.append(FieldError("FieldValueNotSupported", "fieldValidation", text))
    if len(query.get("fieldManager", "").encode()) > _LONGEST_MANAGER:
        errors.append(too_long("fieldManager", _LONGEST_MANAGER))
    if "force" in query and method == "PATCH" and not apply:
        errors.append(not_permitted("force", "may not be specified for non-apply patch"))
    if errors:
        raise invalid("meta.k8s.io", _OPTIONS.get(method, "UpdateOptions"), "", errors)
    manager = query.get("fieldManager") or ("" if apply else user_agent.partition("/")[0] or "unknown")
    level = next(level for level in _VALIDATIONS if level == validation)
    return Call(caller, manager, dry_run == "All", level, is_true(query, "force"))


def delete_options(query: Mapping[str, str], body: Any) -> dict[str, Any]:
    """Returns the DeleteOptions of the body, overridden by the query.

    Raises:
        ApiError: 422, it cannot be done so.
    """
    options: dict[str, Any] = dict(body) if isinstance(body, dict) else {}
    if "propagationPolicy" in query:
        options["propagationPolicy"] = query["propagationPolicy"]
    policy, errors = options.get("propagationPolicy"), []
    if policy is not None and options.get("orphanDependents") is not None:
        text = "orphanDependents and deletionPropagation cannot be both set"
        errors.append(wrong("propagationPolicy", policy, text))
    elif policy is not None and policy not in _POLICIES:
        errors.append(not_supported("propagationPolicy", policy, (*_POLICIES, "nil")))
    if errors:
        raise invalid("meta.k8s.io", "DeleteOptions", "", errors)
    return options


def body_of(content: bytes, content_type: str) -> Any:
    """Decodes the body in any supported format; None if it is empty.

    Raises:
        ApiError: 400 or 415, it cannot be read.
    """
    if not content:
        return None
    if content.startswith(MAGIC):
        return decode(content)
    try:
        if "yaml" in content_type:
            return yaml.load(content, yaml.CSafeLoader)
        return orjson.loads(content)
    except (yaml.YAMLError, orjson.JSONDecodeError) as error:
        raise bad_request(f"error decoding the body: {error}") from None


def required_body(content: bytes, content_type: str, accepted: Sequence[str] = BODIES) -> Any:
    """Decodes the required body `content`; `accepted` are the supported content types.

    Raises:
        ApiError: 400 or 415.
    """
    if content_type not in ("", "application/octet-stream", *accepted):
        raise unsupported_media(accepted)
    body = body_of(content, content_type)
    if body is None:
        raise ApiError(400, "BadRequest", "the body of the request is empty: an object is needed")
    return body
