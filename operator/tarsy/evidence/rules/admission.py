"""Rules about pods that the API server refuses to create."""

import re
from collections.abc import Iterator

from tarsy.evidence.fields import Object, integer, one_line, string
from tarsy.evidence.rules.facts import Facts
from tarsy.evidence.rules.signal import Signal, rule
from tarsy.evidence.snapshot import ObjectKey
from tarsy.evidence.workloads import condition

_CREATORS = ("ReplicaSet", "StatefulSet", "DaemonSet", "Job")


def _lacks_pods(kind: str, obj: Object) -> bool:
    """Returns whether a controller has fewer pods than it should have."""
    if kind == "DaemonSet":
        wanted, there = (
            integer(obj, "status", "desiredNumberScheduled"),
            integer(obj, "status", "currentNumberScheduled"),
        )
    elif kind == "Job":
        return not integer(obj, "status", "active") and not integer(obj, "status", "succeeded")
    else:
        wanted, there = integer(obj, "spec", "replicas"), integer(obj, "status", "replicas")
    return (there or 0) < (1 if wanted is None else wanted)


def _failures(facts: Facts) -> Iterator[tuple[ObjectKey, str]]:
    """Yields controllers that lack pods, with the words of the API server."""
    for kind in _CREATORS:
        for key, obj in facts.snapshot.items(kind):
            if not _lacks_pods(kind, obj):
                continue
            failure = condition(obj, "ReplicaFailure")
            if failure.get("status") == "True" and (message := string(failure, "message")):
                yield key, one_line(message)
            else:
                yield from ((key, message) for message in facts.messages(key, "FailedCreate"))


def _refused(facts: Facts, pattern: str, text: str, limits: str = "") -> Iterator[Signal]:
    """Yields a signal for each controller that is refused with words that match.

    Args:
        facts: the objects.
        pattern: of the words.
        text: why, for people.
        limits: kind of the objects that refuse; a group of the pattern may have the name, else all of the namespace.
    """
    found, told = re.compile(pattern, re.IGNORECASE), set()
    for key, message in _failures(facts):
        if (words := found.search(message)) is not None and key not in told:
            told.add(key)
            named = words[1] if found.groups and words[1] else None
            by = [one for one in facts.snapshot.keys(limits, key.namespace) if named in (None, one.name)]
            objects = (facts.workload(key), key, *(by if limits else ()))
            yield Signal(objects, f"Pods of {key} are not created: {text}.", message)


@rule("quota-exceeded", "A ResourceQuota is used up")
def quota(facts: Facts) -> Iterator[Signal]:
    """Finds workloads that a ResourceQuota keeps from their pods."""
    yield from _refused(
        facts,
        r"(?:exceeded|failed) quota: ([\w.-]+)",
        "a ResourceQuota of the namespace is used up, or asks for requests and limits",
        "ResourceQuota",
    )


@rule("limit-range-refuses", "A LimitRange does not allow the resources of the pod")
def limit_range(facts: Facts) -> Iterator[Signal]:
    """Finds workloads whose resources a LimitRange refuses."""
    pattern = r"(?:maximum|minimum) [\w.-]+ usage per (?:Container|Pod)|limit to request ratio"
    yield from _refused(facts, pattern, "a LimitRange of the namespace does not allow its resources", "LimitRange")


@rule("pod-security-refuses", "Pod Security admission refuses the pod")
def pod_security(facts: Facts) -> Iterator[Signal]:
    """Finds workloads that the namespace's Pod Security level refuses."""
    yield from _refused(facts, r"violates PodSecurity", "the Pod Security level of the namespace refuses them")


@rule("webhook-refuses", "An admission webhook or policy refuses the pod")
def webhook_refuses(facts: Facts) -> Iterator[Signal]:
    """Finds workloads that an admission webhook or policy refuses."""
    pattern = r"admission webhook \"[^\"]+\" denied|ValidatingAdmissionPolicy '[^']+' .*denied"
    yield from _refused(facts, pattern, "an admission webhook or policy refuses them")


@rule("webhook-unavailable", "An admission webhook does not answer")
def webhook_unavailable(facts: Facts) -> Iterator[Signal]:
    """Finds workloads that wait for a webhook that does not answer."""
    yield from _refused(facts, r"failed calling webhook|failed to call webhook", "an admission webhook does not answer")


@rule("service-account-missing", "The ServiceAccount of the pod does not exist")
def account_missing(facts: Facts) -> Iterator[Signal]:
    """Finds workloads whose ServiceAccount does not exist."""
    yield from _refused(facts, r"serviceaccount \"[^\"]+\" not found", "their ServiceAccount does not exist")


RULES = (
    quota,
    limit_range,
    pod_security,
    webhook_refuses,
    webhook_unavailable,
    account_missing,
)
