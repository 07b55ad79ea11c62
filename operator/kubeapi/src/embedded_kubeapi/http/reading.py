"""Serves get and list, with pagination at the revision of the first page.

What was there then is worked out backwards from what is there now and the log of events. "Retrieving large results sets
in chunks" and "Semantics for get and list" on kubernetes.io/docs/reference/using-api/api-concepts.
"""

from __future__ import annotations

import base64
import binascii
import json
from bisect import bisect_right
from collections.abc import Mapping

from embedded_kubeapi.errors import (
    ApiError,
    FieldError,
    bad_request,
    expired,
    invalid,
    not_permitted,
    not_supported,
)  # fmt: skip
from embedded_kubeapi.http.answers import Form, shown_list
from embedded_kubeapi.http.request import Target
from embedded_kubeapi.objects import Obj
from embedded_kubeapi.resource import Resource
from embedded_kubeapi.selectors import predicate
from embedded_kubeapi.store import Store

_TOKEN_VERSION = "meta.k8s.io/v1"


def list_objects(store: Store, resource: Resource, target: Target, query: Mapping[str, str], form: Form) -> Obj:
    """Returns the list that the query selects.

    Raises:
        ApiError: 400 for a bad selector or token, 410 for a page of a list that is too old, 504 for the future.
    """
    labels, fields = query.get("labelSelector", ""), query.get("fieldSelector", "")
    shows = predicate(resource, labels, fields)
    limit = _number(query, "limit")
    start = None
    if token := query.get("continue"):
        if query.get("resourceVersion", "0") not in ("", "0"):
            raise bad_request("specifying resource version is not allowed when using continue")
        revision, start = _from_token(token)
        if not store.holds(revision):
            raise expired(
                "The provided continue parameter is too old to display a consistent list result. You can start a new "
                "list without the continue parameter."
            )
    else:
        revision = _checked_revision(store, query, limit)
    stored = store.objects(resource.key, target.namespace, revision)
    found = [obj for obj in map(resource.shown, stored) if shows(obj)]
    if start is not None:
        found = found[bisect_right(found, start, key=_place) :]
    meta: Obj = {"resourceVersion": str(revision)}
    if limit and len(found) > limit:
        meta["continue"] = _to_token(revision, _place(found[limit - 1]))
        if not labels and not fields:
            meta["remainingItemCount"] = len(found) - limit
        found = found[:limit]
    return shown_list(resource, found, meta, form)


def _checked_revision(store: Store, query: Mapping[str, str], limit: int) -> int:
    """Returns the revision to list at: the current one, unless the query requires an exact one."""
    wanted, match = _number(query, "resourceVersion"), query.get("resourceVersionMatch", "")
    if match and (error := _wrong_match(match, query.get("resourceVersion", ""))):
        raise invalid("meta.k8s.io", "ListOptions", "", [error])
    if wanted > store.revision:
        text = f"Timeout: Too large resource version: {wanted}, current: {store.revision}"
        causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
        raise ApiError(504, "Timeout", text, {"retryAfterSeconds": 1, "causes": causes})
    exact = match == "Exact" or (limit and wanted and not match)
    if exact and not store.holds(wanted):
        raise expired(f"The resourceVersion for the provided list is too old: {wanted}")
    return wanted if exact else store.revision


def _wrong_match(match: str, version: str) -> FieldError | None:
    field = "resourceVersionMatch"
    if not version:
        return not_permitted(field, "resourceVersionMatch is forbidden unless resourceVersion is provided")
    if match not in ("Exact", "NotOlderThan"):
        return not_supported(field, match, ("Exact", "NotOlderThan", ""))
    if match == "Exact" and version == "0":
        return not_permitted(field, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"')
    return None


def _number(query: Mapping[str, str], name: str) -> int:
    text = query.get(name) or "0"
    if not text.isdigit():
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    return int(text)


def _place(obj: Obj) -> tuple[str, str]:
    return obj["metadata"].get("namespace") or "", obj["metadata"]["name"]


def _to_token(revision: int, place: tuple[str, str]) -> str:
    body = {"v": _TOKEN_VERSION, "rv": revision, "start": list(place)}
    return base64.urlsafe_b64encode(json.dumps(body).encode()).decode().rstrip("=")


def _from_token(token: str) -> tuple[int, tuple[str, str]]:
    try:
        body = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        namespace, name = body["start"]
        return int(body["rv"]), (str(namespace), str(name))
    except (ValueError, KeyError, TypeError, binascii.Error):
        raise bad_request("continue key is not valid: it must be taken from the last list's metadata") from None
