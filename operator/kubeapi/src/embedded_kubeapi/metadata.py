"""Validates `metadata` of every kind: names, labels, immutable fields."""

from __future__ import annotations

from collections.abc import Iterator

from embedded_kubeapi.errors import FieldError, not_permitted, required, wrong
from embedded_kubeapi.objects import (
    DNS_LABEL,
    DNS_SUBDOMAIN,
    PATH_SEGMENT,
    Key,
    Obj,
    is_label_value,
    is_qualified_name,
)  # fmt: skip

_LABEL_NAMES = frozenset((("", "namespaces"), ("", "services")))
_PATH_NAMES = "rbac.authorization.k8s.io"
_MAX_LABEL, _MAX_SUBDOMAIN, _MAX_ANNOTATIONS = 63, 253, 256 * 1024
_SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_LABEL_TEXT = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_KEY_TEXT = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


def check_name(key: Key, name: str) -> Iterator[FieldError]:
    """Returns the errors in the name of an object of this kind."""
    if key[0] == _PATH_NAMES:
        if not PATH_SEGMENT.fullmatch(name):
            yield wrong("metadata.name", name, "may not contain '/' or '%', nor be '.' or '..'")
    elif key in _LABEL_NAMES:
        if not DNS_LABEL.fullmatch(name):
            yield wrong("metadata.name", name, _LABEL_TEXT)
        if len(name) > _MAX_LABEL:
            yield wrong("metadata.name", name, f"must be no more than {_MAX_LABEL} characters")
    else:
        if not DNS_SUBDOMAIN.fullmatch(name):
            yield wrong("metadata.name", name, _SUBDOMAIN_TEXT)
        if len(name) > _MAX_SUBDOMAIN:
            yield wrong("metadata.name", name, f"must be no more than {_MAX_SUBDOMAIN} characters")


def check_metadata(meta: Obj) -> Iterator[FieldError]:
    """Returns the errors in labels, annotations, finalizers and owners."""
    for name, value in (meta.get("labels") or {}).items():
        if not is_qualified_name(name):
            yield wrong("metadata.labels", name, _KEY_TEXT)
        if not isinstance(value, str) or not is_label_value(value):
            yield wrong("metadata.labels", value, _VALUE_TEXT)
    total = 0
    for name, value in (meta.get("annotations") or {}).items():
        if not is_qualified_name(name.lower()):
            yield wrong("metadata.annotations", name, _KEY_TEXT)
        total += len(name) + len(str(value))
    if total > _MAX_ANNOTATIONS:
        text = f"Too long: may not be more than {_MAX_ANNOTATIONS} bytes"
        yield FieldError("FieldValueTooLong", "metadata.annotations", text)
    for at, finalizer in enumerate(meta.get("finalizers") or ()):
        if not is_qualified_name(finalizer):
            yield wrong(f"metadata.finalizers[{at}]", finalizer, _KEY_TEXT)
    controllers = 0
    for at, reference in enumerate(meta.get("ownerReferences") or ()):
        for field in ("apiVersion", "kind", "name", "uid"):
            if not reference.get(field):
                yield required(f"metadata.ownerReferences[{at}].{field}", "must not be empty")
        controllers += bool(reference.get("controller"))
    if controllers > 1:
        yield wrong("metadata.ownerReferences", "<references>", "Only one reference can have Controller set to true")


def check_change(meta: Obj, old: Obj) -> Iterator[FieldError]:
    """Returns the changes of metadata that an update may not make."""
    if old.get("deletionTimestamp"):
        added = [name for name in meta.get("finalizers") or () if name not in (old.get("finalizers") or ())]
        if added:
            shown = ", ".join(f'"{name}"' for name in added)
            detail = "no new finalizers can be added if the object is being deleted, found new finalizers "
            yield not_permitted("metadata.finalizers", f"{detail}[]string{{{shown}}}")
