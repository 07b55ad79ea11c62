"""Status has a fixed upper size, whatever tools and models return."""

import functools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from properties import examples
from tarsy.resources.crd import crd
from tarsy.resources.meta import MAX_STATUS_BYTES
from tarsy.resources.schema import clip
from tarsy.resources.v1alpha1 import KINDS

HOSTILE = ["x", "<", "&", '"', "\\", "\n", "é", "漢", "😀", "\u2028", "\x00"]


def stored(value: Any) -> bytes:
    """JSON as the API server (Go) writes it."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text.encode()


def fattest(schema: dict[str, Any], char: str) -> Any:
    """The largest value that a schema lets through, with `char` in all free text."""
    match schema["type"]:
        case "object":
            return {name: fattest(child, char) for name, child in schema["properties"].items()}
        case "array":
            items = [fattest(schema["items"], char) for _ in range(schema["maxItems"])]
            for key in schema.get("x-kubernetes-list-map-keys", ()):
                for index, item in enumerate(items):
                    item[key] = f"{index:064d}"
            return items
        case "string" if "enum" in schema:
            return max(schema["enum"], key=len)
        case "string" if schema.get("format") == "date-time":
            return "2026-11-22T12:00:00Z"
        case "string":
            return ("a" if "pattern" in schema else char) * schema["maxLength"]
        case "integer":
            return 2**63 - 1
        case other:
            raise AssertionError(other)


@functools.cache
def status_schema(kind) -> dict[str, Any]:
    return crd(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]


def worst_status(kind, char: str) -> dict[str, Any]:
    schema = status_schema(kind)
    model = kind.model_fields["status"].annotation
    return model.model_validate(fattest(schema, char), by_name=False).to_dict()


@pytest.mark.sweep("another character")
@pytest.mark.parametrize("char", HOSTILE, ids=ascii)
@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.KIND)
def test_worst_case_status_stays_under_its_limit(kind, char):
    assert len(stored(worst_status(kind, char))) < MAX_STATUS_BYTES


def test_worst_case_of_an_investigation_is_near_its_limit_so_the_test_means_something():
    assert len(stored(worst_status(KINDS["Investigation"], "😀"))) > 0.8 * MAX_STATUS_BYTES


@examples(60)
@given(st.text(st.characters() | st.sampled_from('<>&"\\\u2028\n\t\x07')), st.integers(1, 64))
def test_clipped_text_keeps_within_characters_and_stored_bytes(text, limit):
    cut = clip(text, limit)
    assert len(cut) <= limit
    assert len(stored(cut)) - 2 <= 4 * limit
    assert clip(cut, limit) == cut
    assert not any(ord(char) < 32 and char not in "\t\n" for char in cut)


@pytest.mark.parametrize("text", ["", "short", "x" * 100, "漢" * 100])
def test_text_that_fits_stays_as_it_is(text):
    assert clip(text, 100) == text


def test_text_that_is_cut_says_so():
    assert clip("x" * 101, 100) == "x" * 99 + "…"
