"""Selects what counts as a change of an object, and replaces values that may be secret by keyed digests.

Selected is all but status, bookkeeping of the API server, and annotations that controllers write all the time. Of Pods
only restarts and failures are selected; of GitOps objects also the deployed revision, which is in their status.
Digests stand for ConfigMap data, annotations, each `value` beside a `name` (environment variables, HTTP headers,
parameters), and values of charts. All other text is masked. An object whose text cannot be masked, or that is too
large, is reduced to digests: nothing unmasked is returned.
"""

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from tarsy.evidence.fields import Object, mapping, mappings, string
from tarsy.evidence.history.digests import Digest, Digests
from tarsy.evidence.workloads import container_states
from tarsy.record.text import clean

MAX_FORM_BYTES = 64 * 1024
"""Maximum size of a recorded form as JSON; each value of a larger one is replaced by its digest."""

MAX_TEXT = 2048
"""Maximum characters of a text in a form; a longer one is replaced by its digest."""

_MAX_KEY = 253
_MAX_DEPTH = 40
_COMPRESSION = 6
_GITOPS = ("Application", "Kustomization", "HelmRelease")
_VALUES = frozenset({"values", "valuesObject", "parameters", "substitute", "patches"})
_NOT_SELECTED = frozenset({"apiVersion", "kind", "metadata", "status"})
_NOISE = (
    "kubectl.kubernetes.io/last-applied-configuration",
    "control-plane.alpha.kubernetes.io/leader",
    "deployment.kubernetes.io/",
    "autoscaling.alpha.kubernetes.io/",
    "pv.kubernetes.io/",
    "argocd.argoproj.io/refresh",
    "reconcile.fluxcd.io/",
)
"""Annotations, or their prefixes, whose change is none of the object."""

Mask = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class FormRules:
    """Holds the rules by which forms are made.

    Attributes:
        digests: computes digests.
        mask: masks a text; raises if it cannot.
        values: whether masked values are kept beside the digests.
    """

    digests: Digests
    mask: Mask
    values: bool = False


def is_recorded(obj: Object) -> bool:
    """Returns whether an object is recorded: one that a controller made is not, but for Pods."""
    owned = any(owner.get("controller") is True for owner in mappings(obj, "metadata", "ownerReferences"))
    return string(obj, "kind") == "Pod" or not owned


def selected(obj: Object) -> Object:
    """Returns what counts as a change of an object, values included; empty: nothing to record of it yet."""
    kind = string(obj, "kind")
    if kind == "Pod":
        return _of_pod(obj)
    found: dict[str, Any] = {key: value for key, value in obj.items() if key not in _NOT_SELECTED}
    annotations = {
        key: text for key, text in mapping(obj, "metadata", "annotations").items() if not str(key).startswith(_NOISE)
    }
    metadata = {"labels": mapping(obj, "metadata", "labels"), "annotations": annotations}
    found["metadata"] = {key: value for key, value in metadata.items() if value}
    if kind in _GITOPS:
        found["deployed"] = _deployed(kind, obj)
    return found


def _of_pod(pod: Object) -> Object:
    ended = {
        state.name: {
            "restarts": state.restarts,
            "exitCode": state.ended.get("exitCode"),
            "reason": string(state.ended, "reason"),
        }
        for state in container_states(pod)
        if state.restarts
    }
    failed = string(pod, "status", "phase") == "Failed"
    found: dict[str, Any] = {"containers": ended} if ended else {}
    if failed:
        found["failed"] = string(pod, "status", "reason") or "Failed"
    return found


def _deployed(kind: str, obj: Object) -> str:
    if kind == "Application":
        return string(obj, "status", "sync", "revision")
    if kind == "Kustomization":
        return string(obj, "status", "lastAppliedRevision")
    newest = next(iter(mappings(obj, "status", "history")), {})
    return f"{string(newest, 'chartName')} {string(newest, 'chartVersion')}".strip()


def form_of(kind: str, state: Object, rules: FormRules) -> dict[str, Any]:
    """Returns the form of an object that is recorded.

    Args:
        kind: of the object.
        state: what `selected` returned.
        rules: how values are replaced.
    """
    form = _Redaction(rules, kind).of(state)
    try:
        masked = _with_digests(form, orjson.loads(rules.mask(orjson.dumps(form).decode())))
    except Exception:  # whatever failed: what cannot be searched for secrets is not recorded
        masked = None
    if masked is None or len(orjson.dumps(masked)) > MAX_FORM_BYTES:
        masked = _digested(state, rules.digests, 0)
    if len(orjson.dumps(masked)) > MAX_FORM_BYTES:
        return {"tooLarge": rules.digests.of_value(rules.digests.of_state(state).hex())}
    return dict(masked)


def pack(form: Object) -> bytes:
    """Returns a form as compressed JSON."""
    return zlib.compress(orjson.dumps(form, option=orjson.OPT_SORT_KEYS), _COMPRESSION)


def unpack(packed: bytes) -> dict[str, Any]:
    """Returns the form of compressed JSON."""
    form = orjson.loads(zlib.decompress(packed))
    return form if isinstance(form, dict) else {}


def _with_digests(form: Any, masked: Any) -> Any:
    """Returns a masked form with the digests of the form: what masking made of them would hide their change.

    Raises:
        ValueError: masking changed the shape.
    """
    if isinstance(form, Digest):
        return form
    if isinstance(form, Mapping) and isinstance(masked, Mapping):
        both = zip(form.values(), masked.items(), strict=True)
        return {key: _with_digests(one, other) for one, (key, other) in both}
    if isinstance(form, list) and isinstance(masked, list):
        return [_with_digests(one, other) for one, other in zip(form, masked, strict=True)]
    if isinstance(form, Mapping | list) or isinstance(masked, Mapping | list):
        raise ValueError("masking changed the shape of an object")
    return masked


class _Redaction:
    """Replaces the values of a state that may be secret."""

    def __init__(self, rules: FormRules, kind: str) -> None:
        self._rules = rules
        self._kind = kind

    def of(self, state: Object) -> dict[str, Any]:
        found = {_key(key, self._rules.digests): self._walk(key, value, 1) for key, value in state.items()}
        if self._kind == "ConfigMap":
            for field in ("data", "binaryData"):
                if field in state:
                    found[field] = self._values(mapping(state, field), shown=field == "data")
        return found

    def _walk(self, name: str, value: Any, depth: int) -> Any:
        digests = self._rules.digests
        if depth > _MAX_DEPTH or (self._kind in _GITOPS and name in _VALUES):
            return _digested(value, digests, depth)
        if isinstance(value, Mapping):
            if name == "annotations":
                return self._values(value)
            pair = isinstance(value.get("name"), str) and isinstance(value.get("value"), str)
            return {
                _key(key, digests): self._value(one) if pair and key == "value" else self._walk(key, one, depth + 1)
                for key, one in value.items()
            }
        if isinstance(value, list):
            return [self._walk("", one, depth + 1) for one in value]
        if isinstance(value, str):
            return clean(value) if len(value) <= MAX_TEXT else digests.of_value(value)
        return value

    def _values(self, values: Object, *, shown: bool = True) -> dict[str, Any]:
        digests = self._rules.digests
        return {
            _key(key, digests): self._value(one, shown=shown) if isinstance(one, str) else _digested(one, digests, 0)
            for key, one in values.items()
        }

    def _value(self, value: str, *, shown: bool = True) -> Any:
        digest = self._rules.digests.of_value(value)
        if not (shown and self._rules.values and len(value) <= MAX_TEXT):
            return digest
        try:
            return {"digest": digest, "masked": clean(self._rules.mask(value))}
        except Exception:  # whatever failed: what cannot be searched for secrets is not recorded
            return digest


def _key(key: Any, digests: Digests) -> str:
    text = str(key)
    return clean(text) if len(text) <= _MAX_KEY else digests.of_value(text)


def _digested(value: Any, digests: Digests, depth: int) -> Any:
    """Replaces each value by its digest, and keeps keys; deep ones become one digest."""
    if isinstance(value, Mapping) and depth <= _MAX_DEPTH:
        return {_key(key, digests): _digested(one, digests, depth + 1) for key, one in value.items()}
    if isinstance(value, list) and depth <= _MAX_DEPTH:
        return [_digested(one, digests, depth + 1) for one in value]
    return digests.of_value(value if isinstance(value, str) else repr(value))
