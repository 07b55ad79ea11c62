"""Tests the cache with events that come twice, late, or from several sides."""

import pytest

from tarsy.controllers.machinery.cache import GONE_KEPT, Cache, Key, UnreadableObject
from tarsy.plan.check import check_references
from tarsy.resources.parse import parse_object
from tarsy.resources.v1alpha1 import Agent, Chain, Investigation
from unit.controllers.builders import OTHER_UID, UID, raw

KEY = Key("Agent", "team-a", "one")


def text(cache: Cache) -> str | None:
    found = cache.get(Agent, "team-a", "one")
    return found.spec.description if found else None


def agent(version: str, description: str = "", uid: str = UID) -> dict:
    return raw("Agent", "one", {"description": description}, resourceVersion=version, uid=uid)


def test_older_version_never_replaces_a_newer_one() -> None:
    cache = Cache()
    cache.put(agent("9", "old"))
    cache.put(agent("10", "new"))
    cache.put(agent("9", "old"))
    assert text(cache) == "new"


def test_older_object_of_the_same_name_never_replaces_its_successor() -> None:
    cache = Cache()
    cache.put(agent("20", "new", OTHER_UID))
    cache.put(agent("10", "old", UID))
    assert text(cache) == "new"


def test_version_that_is_known_to_follow_replaces_what_was_here_whatever_its_number() -> None:
    cache = Cache()
    cache.put(agent("1000", "before the restore"))
    cache.put(agent("7", "after"), instead_of=cache.version(KEY))
    assert text(cache) == "after"


def test_versions_that_are_no_numbers_are_taken_as_they_come() -> None:
    cache = Cache()
    cache.put(agent("abc", "first"))
    cache.put(agent("abb", "second"))
    assert text(cache) == "second"


def test_end_of_an_object_does_not_remove_its_successor() -> None:
    cache = Cache()
    cache.put(agent("10", "old", UID))
    cache.put(agent("20", "new", OTHER_UID))
    cache.drop(KEY, UID)
    assert text(cache) == "new"
    cache.drop(KEY, OTHER_UID)
    assert cache.find(KEY) is None and cache.version(KEY) is None and cache.all_keys() == []


def test_object_that_does_not_fit_its_kind_is_kept_with_its_errors_and_is_in_no_list() -> None:
    cache = Cache()
    cache.put(agent("10"))
    cache.put(raw("Agent", "one", {"maxIterations": 0}, resourceVersion="11"))
    found = cache.find(KEY)
    assert isinstance(found, UnreadableObject)
    assert [error.path for error in found.error.errors] == ["spec.maxIterations"]
    assert cache.get(Agent, "team-a", "one") is None and cache.list(Agent, "team-a") == []
    assert cache.keys_of("Agent") == [KEY]
    cache.put(agent("12", "mended"))
    assert text(cache) == "mended" and cache.keys_of("Agent") == [KEY]


def test_object_that_does_not_fit_can_be_dropped() -> None:
    cache = Cache()
    cache.put(raw("Agent", "one", {"maxIterations": 0}))
    cache.drop(KEY, UID)
    assert cache.find(KEY) is None


def test_lists_are_of_one_kind_and_one_namespace() -> None:
    cache = Cache()
    cache.put(raw("Agent", "a"))
    cache.put(raw("Agent", "b", namespace="team-b"))
    assert [obj.metadata.name for obj in cache.list(Agent, "team-a")] == ["a"]
    assert cache.list(Chain, "team-a") == []


def test_namespace_has_the_label_of_its_name_even_when_it_is_not_known() -> None:
    cache = Cache()
    cache.set_namespace("team-a", {"tier": "gold"})
    assert cache.namespace_labels("team-a") == {"kubernetes.io/metadata.name": "team-a", "tier": "gold"}
    cache.set_namespace("team-a", None)
    assert cache.namespace_labels("team-a") == {"kubernetes.io/metadata.name": "team-a"}


def test_a_reference_to_an_object_that_does_not_fit_its_kind_says_so_instead_of_asking_to_create_it() -> None:
    cache = Cache()
    cache.put(raw("LLMProvider", "model", {"type": "gpt"}))
    spec = {"llmProvider": "model", "stages": [{"name": "s", "agents": [{"name": "one"}]}]}
    chain = parse_object(raw("Chain", "pods", spec))
    errors = {error.field: error.message for error in check_references(chain, cache)}
    assert errors["spec.llmProvider"] == ("LLMProvider team-a/model is not valid; see its condition Ready")


ENDED = {"conditions": [{"type": "Finished", "status": "True", "reason": "Succeeded"}]}
RUNNING = {"conditions": [{"type": "Finished", "status": "False", "reason": "Running"}]}
INV = Key("Investigation", "team-a", "inv")


def inv(version: str, status: object, **meta: object) -> dict:
    return raw("Investigation", "inv", {"alertRef": {"name": "a"}}, status, resourceVersion=version, **meta)


def test_what_has_finished_is_kept_as_json_without_managed_fields_and_is_found_all_the_same() -> None:
    cache = Cache()
    cache.put(inv("10", RUNNING))
    assert cache.finished(INV) is None and len(cache.list(Investigation, "team-a")) == 1
    cache.put(inv("11", ENDED, managedFields=[{"manager": "kubectl"}]))
    document = cache.finished(INV)
    assert document is not None and b"Succeeded" in document and b"managedFields" not in document
    found = cache.get(Investigation, "team-a", "inv")
    assert found is not None and found == cache.find(INV) and found.status.conditions[0].reason == "Succeeded"
    assert cache.list(Investigation, "team-a") == [] and cache.keys_of("Investigation") == [INV]
    cache.put(inv("12", RUNNING))
    assert cache.finished(INV) is None and len(cache.list(Investigation, "team-a")) == 1
    cache.put(inv("13", ENDED))
    cache.drop(INV, UID)
    assert cache.finished(INV) is None and cache.find(INV) is None


def test_what_has_finished_and_does_not_fit_its_kind_is_found_with_its_errors() -> None:
    cache = Cache()
    cache.put(raw("Investigation", "inv", {"alert": {"alertType": "x"}, "notAField": 1}, ENDED))
    found = cache.find(INV)
    assert isinstance(found, UnreadableObject) and found.raw["status"] == ENDED
    assert cache.get(Investigation, "team-a", "inv") is None


@pytest.mark.parametrize("status", [None, "text", {"conditions": 1}, {"conditions": ["x"]}, {"conditions": "Finished"}])
def test_status_of_no_known_form_has_not_finished(status: object) -> None:
    cache = Cache()
    cache.put({**inv("10", None), "status": status})
    assert cache.finished(INV) is None


def test_configuration_never_finishes() -> None:
    cache = Cache()
    cache.put(raw("Agent", "one", status=ENDED))
    assert cache.finished(KEY) is None and cache.get(Agent, "team-a", "one") is not None


def test_same_state_of_an_object_is_not_parsed_twice() -> None:
    cache = Cache()
    cache.put(agent("10", "first"))
    found = cache.find(KEY)
    cache.put(agent("10", "first"))
    assert cache.find(KEY) is found


def test_an_answer_that_comes_after_the_deletion_is_not_stored_and_what_the_watch_tells_is() -> None:
    """As after the restore of a backup, in which an object is there again with its uid."""
    cache = Cache()
    cache.put(agent("10"), watched=True)
    cache.drop(KEY, UID)
    cache.put(agent("11", "an answer to a write"))
    cache.put_written(agent("11", "an answer to a write"))
    assert cache.find(KEY) is None and cache.all_keys() == []
    cache.put(agent("7", "restored"), watched=True)
    cache.put(agent("8", "an answer to a write"))
    assert text(cache) == "an answer to a write"


def test_the_latest_deletions_are_remembered() -> None:
    cache = Cache()
    for number in range(GONE_KEPT + 1):
        cache.drop(KEY, f"uid-{number}")
    for number, stored in ((1, False), (GONE_KEPT, False), (0, True)):
        cache.put(agent("1", uid=f"uid-{number}"))
        assert (cache.find(KEY) is not None) == stored
        cache.drop(KEY, f"uid-{number}")
