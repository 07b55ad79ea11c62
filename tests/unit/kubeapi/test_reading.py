"""Tests selectors, JSONPath, tables and the event log."""

from datetime import UTC, datetime
from typing import Any

import pytest

from embedded_kubeapi.errors import ApiError
from embedded_kubeapi.jsonpath import BadPath, parse
from embedded_kubeapi.resource import Column, Resource
from embedded_kubeapi.selectors import field_selector, label_selector
from embedded_kubeapi.store import Event, Store
from embedded_kubeapi.table import cell, human_duration

KEY = ("x", "things")
OBJ = {"metadata": {"name": "a"}, "items": [{"t": "A", "v": 1}, {"t": "B", "v": 2}], "d.k": {"x-y": True}}


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        ("", True), ("a=1", True), ("a==1,b", True), ("a!=1", False), ("c!=1", True), ("a in (1,2)", True),
        ("a notin (1)", False), ("!c", True), ("!a", False), ("n>4", True), ("n<4", False), ("a=1,c", False),
    ],
)  # fmt: skip
def test_label_selector_selects(selector: str, matches: bool) -> None:
    assert label_selector(selector)({"a": "1", "b": "", "n": "5"}) is matches


@pytest.mark.parametrize("selector", ["a=b=c", "a b", "a in", "=x", "a=-"])
def test_bad_label_selector_is_a_bad_request(selector: str) -> None:
    with pytest.raises(ApiError) as refused:
        label_selector(selector)
    assert refused.value.code == 400


def test_field_selector_knows_the_fields_of_its_kind() -> None:
    resource = Resource("x", "v1", "things", "Thing", True, selectable=("spec.on",), custom=True)
    obj = {"metadata": {"name": "a", "namespace": "n"}, "spec": {"on": True}}
    assert field_selector("metadata.name=a,spec.on=true,metadata.namespace!=m", resource)(obj)
    assert not field_selector("spec.on=false", resource)(obj)
    with pytest.raises(ApiError, match=r"field label not supported: spec\.off"):
        field_selector("spec.off=1", resource)


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".metadata.name", ["a"]), ("{.items[0].v}", [1]), (".items[-1].v", [2]), (".items[*].t", ["A", "B"]),
        ('.items[?(@.t=="B")].v', [2]), (".items[?(@.v>1)].t", ["B"]), (".items[?(@.none)].t", []),
        (r".d\.k.x-y", [True]), (".['d.k']['x-y']", [True]), (".items[0:1].t", ["A"]), (".none.more", []),
    ],
)  # fmt: skip
def test_json_path_finds(path: str, found: list[Any]) -> None:
    assert parse(path.replace(".[", "[")).find(OBJ) == found


def test_bad_json_path_is_refused() -> None:
    with pytest.raises(BadPath):
        parse(".a[")


def test_cells_have_their_columns_type() -> None:
    present = datetime(2026, 1, 1, 0, 5, tzinfo=UTC)
    obj = {
        "metadata": {"name": "a", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "n": 3,
        "s": "x",
        "b": True,
        "l": [1],
    }
    assert cell(Column("A", ".metadata.creationTimestamp", "date"), obj, present) == "5m"
    assert cell(Column("N", ".n", "integer"), obj, present) == 3
    assert cell(Column("S", ".s", "integer"), obj, present) is None
    assert cell(Column("B", ".b", "string"), obj, present) == "true"
    assert cell(Column("X", ".none"), obj, present) is None


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0, "0s"), (119, "119s"), (300, "5m"), (312, "5m12s"), (3600, "60m"), (4 * 3600, "4h"),
                           (30 * 3600, "30h"), (3 * 86400, "3d"), (20 * 86400, "20d"), (800 * 86400, "2y70d")]
)  # fmt: skip
def test_ages_are_shown_as_kubectl_shows_them(seconds: int, shown: str) -> None:
    assert human_duration(seconds) == shown


def thing(name: str, **meta: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "n", "uid": name, **meta}}


def test_log_goes_back_until_it_is_compacted() -> None:
    store = Store(log_size=3)
    for name in "abcde":
        store.put(KEY, thing(name))
    assert [event.obj["metadata"]["name"] for event in store.events_since(KEY, 4)] == ["d", "e"]
    assert store.holds(3) and not store.holds(2)
    store.compact()
    assert not store.holds(5) and store.holds(6)


def test_listeners_hear_commits_in_order_even_of_other_listeners() -> None:
    store, heard = Store(), list[str]()

    def first(event: Event) -> None:
        if event.obj["metadata"]["name"] == "a":
            store.put(KEY, thing("b"))

    store.listen(KEY, first)
    store.listen(KEY, lambda event: heard.append(event.obj["metadata"]["name"]))
    store.put(KEY, thing("a"))
    assert heard == ["a", "b"]


def test_dependents_are_known_by_their_owners_uid() -> None:
    store = Store()
    store.put(KEY, thing("child", ownerReferences=[{"uid": "o"}]))
    assert store.dependents("o") == [(KEY, "n", "child")]
    store.put(KEY, thing("child"))
    assert store.dependents("o") == []
