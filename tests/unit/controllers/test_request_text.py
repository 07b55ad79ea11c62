"""Tests the templates of requests to other systems: what they may contain, and what values can do in them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from yarl import URL

from tarsy.controllers.notifications.request_text import (
    MOST_IN_A_URL,
    CannotFillIn,
    alert_values,
    filled_body,
    filled_url,
    pointers,
)
from tarsy.resources.v1alpha1.notify import RequestTarget

ID = "alert:/event/data/id"
URL_TEMPLATE = "https://api.example.com/incidents/{{alert:/event/data/id}}/notes?by={{name}}"


def target(url="https://api.example.com/x", body="{}"):
    return RequestTarget(url=url, body=body)


@pytest.mark.parametrize(
    "url", ["https://x", "https://x/", "https://x/{{alert:/a}}/b", "https://x?q={{name}}", "http://n.ns.svc:8080/a"]
)
def test_values_may_stand_after_the_host(url):
    assert target(url=url).url == url


@pytest.mark.parametrize(
    "url",
    [
        "https://{{name}}/",
        "https://x.{{alert:/host}}/",
        "https://x/{{token}}",
        "https://x/{{alert:id}}",
        "https://x/{name}",
        "https://x/#{{name}}",
        "https://x/a b",
        "ftp://x/",
    ],
)
def test_another_url_is_refused(url):
    with pytest.raises(ValidationError):
        target(url=url)


@pytest.mark.parametrize("body", ['{"a": {"b": "{{summary}} ({{confidence}})"}}', '{"a": "{{alert:/x/0}}"}', "[]"])
def test_a_body_may_contain_known_values(body):
    assert target(body=body).body == body


@pytest.mark.parametrize("body", ['{"a": "{{secret}}"}', '{"a": "{{ summary }}"}', '{"a": "{{summary}"}', '"{{"'])
def test_a_body_with_another_placeholder_is_refused(body):
    with pytest.raises(ValidationError):
        target(body=body)


def test_the_pointers_of_a_target_are_found_once():
    assert pointers(target(URL_TEMPLATE, '{"a": "{{alert:/event/data/id}} {{alert:/b}} {{name}}"}')) == (
        "/event/data/id",
        "/b",
    )


def test_texts_and_numbers_of_the_alert_are_values():
    text = json.dumps({"event": {"data": {"id": "Q0ABC"}}, "n": [7], "yes": True, "o": {}, "a/b": "c"})
    wanted = ("/event/data/id", "/n/0", "/yes", "/o", "/missing", "/n/1", "/a~1b")
    assert alert_values(text, wanted) == {"/event/data/id": "Q0ABC", "/n/0": "7", "/a~1b": "c"}


@pytest.mark.parametrize("text", [None, "", "no json", "[" * 100_000])
def test_an_alert_that_is_not_json_has_no_values(text):
    assert alert_values(text, ("/a",)) == {}


@given(st.text(min_size=1, max_size=MOST_IN_A_URL).filter(lambda value: value not in (".", "..")))
def test_no_value_leads_a_request_elsewhere(value):
    try:
        value.encode()
    except UnicodeEncodeError:
        return
    url = URL(filled_url(URL_TEMPLATE, {ID: value, "name": value}), encoded=True)
    assert (url.scheme, url.host, len(url.raw_parts)) == ("https", "api.example.com", 4)
    assert (url.raw_parts[1], url.raw_parts[3]) == ("incidents", "notes")
    assert list(url.query) == ["by"] and url.fragment == ""


@pytest.mark.parametrize("value", ["", ".", "..", "x" * (MOST_IN_A_URL + 1)])
def test_a_value_that_is_no_part_of_a_url_is_refused(value):
    with pytest.raises(CannotFillIn):
        filled_url(URL_TEMPLATE, {ID: value, "name": "n"})


def test_the_longest_value_of_a_url_is_taken():
    assert "x" * MOST_IN_A_URL in filled_url(URL_TEMPLATE, {ID: "x" * MOST_IN_A_URL, "name": "n"})


@given(st.text(max_size=200))
def test_no_value_adds_a_field_to_a_body(value):
    template = '{"note": {"content": "{{summary}}", "kind": "n"}, "list": ["{{summary}}", 1]}'
    try:
        body = json.loads(filled_body(template, {"summary": value}))
    except UnicodeEncodeError:
        return
    assert body == {"note": {"content": value, "kind": "n"}, "list": [value, 1]}


def test_a_value_is_not_filled_in_again():
    assert json.loads(filled_body('{"a": "{{summary}}"}', {"summary": "{{name}}", "name": "n"})) == {"a": "{{name}}"}


def test_a_missing_value_of_the_alert_is_named():
    with pytest.raises(CannotFillIn, match="no text or number at /event/data/id"):
        filled_url(URL_TEMPLATE, {"name": "n"})


def test_a_body_that_is_not_json_is_named():
    with pytest.raises(CannotFillIn, match="not JSON"):
        filled_body('{"a": {{summary}}}', {"summary": "1"})
