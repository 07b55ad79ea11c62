"""Defines rules about requests that RBAC denies."""

import re
from collections.abc import Iterator

from tarsy.evidence.fields import mappings, one_line, string
from tarsy.evidence.rules.admission import creation_failures
from tarsy.evidence.rules.facts import Facts
from tarsy.evidence.rules.signal import Certainty, Signal, rule
from tarsy.evidence.snapshot import ObjectKey

_DENIED = re.compile(r'forbidden: User "(?:system:serviceaccount:([\w.-]+):)?([^"]+)" cannot (\w+) resource "([^"]+)"')


@rule("rbac-denied", "RBAC denies a request that a workload or a controller makes")
def denied(facts: Facts) -> Iterator[Signal]:
    """Finds denials in the words of controllers, and in the last words of containers, which may say anything."""
    told = set()
    for key, message, certainty in _messages(facts):
        if key not in told and (found := _DENIED.search(message)) is not None:
            told.add(key)
            namespace, user, verb, resource = found.groups()
            account = ObjectKey("ServiceAccount", namespace, user) if namespace else None
            who = account or f"user {user}"
            text = f"{key} reports that RBAC denies {who} to {verb} {resource}."
            yield Signal((key, account) if account else (key,), text, message, certainty)


def _messages(facts: Facts) -> Iterator[tuple[ObjectKey, str, Certainty]]:
    for key, message in creation_failures(facts):
        yield key, message, Certainty.CERTAIN
    for key in facts.snapshot.all_keys():
        conditions = mappings(facts.snapshot.at(key), "status", "conditions") if key.kind != "Pod" else ()
        for one in conditions:  # those of a pod may be of its own making, by readiness gates
            if one.get("status") == "False" and (message := one_line(string(one, "message"))):
                yield key, message, Certainty.CERTAIN
    for key, _, state in facts.failing_containers:
        yield key, one_line(string(state.ended, "message")), Certainty.LIKELY


RULES = (denied,)
