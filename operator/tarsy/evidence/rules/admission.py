"""Defines rules about pods that the API server refuses to create."""

import re
from collections.abc import Iterator
from functools import partial

from tarsy.evidence.fields import Object, integer, one_line, string
from tarsy.evidence.rules.facts import Facts
from tarsy.evidence.rules.signal import Certainty, Rule, Signal, rule
from tarsy.evidence.snapshot import ObjectKey
from tarsy.evidence.workloads import condition

_CREATORS = ("ReplicaSet", "StatefulSet", "DaemonSet", "Job")


_WORDS = {
    "quota-exceeded": r"(?:exceeded|failed) quota: ([\w.-]+)",
    "limit-range-refuses": r"(?:maximum|minimum) [\w.-]+ usage per (?:Container|Pod)|limit to request ratio",
    "pod-security-refuses": r"violates PodSecurity",
    "webhook-refuses": r"admission webhook \"[^\"]+\" denied|ValidatingAdmissionPolicy '[^']+' .*denied",
    "webhook-unavailable": r"failed calling webhook|failed to call webhook",
    "service-account-missing": r"serviceaccount \"[^\"]+\" not found",
}
"""Patterns of the API server's words by rule, of any case."""

_KNOWN = re.compile("|".join((*_WORDS.values(), r"forbidden: User \"")), re.IGNORECASE)


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


def creation_failures(facts: Facts) -> Iterator[tuple[ObjectKey, str]]:
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


def _refused(facts: Facts, found: re.Pattern[str], text: str, limits: str) -> Iterator[Signal]:
    """Yields a signal for each controller that is refused with words that match.

    Args:
        facts: the objects.
        found: pattern of the words.
        text: why, for people.
        limits: kind of the objects that refuse; a group of the pattern may have the name, else all of the namespace.
    """
    told = set()
    for key, message in creation_failures(facts):
        if (words := found.search(message)) is not None and key not in told:
            told.add(key)
            named = words[1] if found.groups and words[1] else None
            by = [one for one in facts.snapshot.keys(limits, key.namespace) if named in (None, one.name)]
            objects = (facts.workload(key), key, *(by if limits else ()))
            yield Signal(objects, f"Pods of {key} are not created: {text}.", message)


@rule("pods-not-created", "The API server does not create the pods of a controller, for a reason of its own")
def not_created(facts: Facts) -> Iterator[Signal]:
    """Finds controllers that are refused with words that no other rule knows."""
    told = set()
    for key, message in creation_failures(facts):
        if key not in told and not _KNOWN.search(message):
            told.add(key)
            yield Signal((facts.workload(key), key), f"Pods of {key} are not created.", message, Certainty.LIKELY)


def _refusal(name: str, about: str, text: str, limits: str = "") -> Rule:
    """Makes a rule of the API server's words in `_WORDS`.

    Args:
        name: of the rule.
        about: the fault, in words.
        text: why the pods are not created.
        limits: kind of the objects that refuse; empty: none that can be read.
    """
    found = re.compile(_WORDS[name], re.IGNORECASE)
    return Rule(name, about, partial(_refused, found=found, text=text, limits=limits))


RULES = (
    _refusal(
        "quota-exceeded",
        "A ResourceQuota is used up",
        "a ResourceQuota of the namespace is used up, or asks for requests and limits",
        "ResourceQuota",
    ),
    _refusal(
        "limit-range-refuses",
        "A LimitRange does not allow the resources of the pod",
        "a LimitRange of the namespace does not allow its resources",
        "LimitRange",
    ),
    _refusal(
        "pod-security-refuses",
        "Pod Security admission refuses the pod",
        "the Pod Security level of the namespace refuses them",
    ),
    _refusal(
        "webhook-refuses",
        "An admission webhook or policy refuses the pod",
        "an admission webhook or policy refuses them",
    ),
    _refusal(
        "webhook-unavailable",
        "An admission webhook does not answer",
        "an admission webhook does not answer",
    ),
    _refusal(
        "service-account-missing",
        "The ServiceAccount of the pod does not exist",
        "their ServiceAccount does not exist",
    ),
    not_created,
)
