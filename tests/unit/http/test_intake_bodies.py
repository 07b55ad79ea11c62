"""Tests the parsing of notification bodies, and their routing."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarsy.http.authentication.identity import Caller
from tarsy.http.intake.alerts import draft_alert, group_hash
from tarsy.http.intake.bodies import parse_body
from tarsy.http.intake.formats.notification import BadBody
from tarsy.http.intake.routing import match_route
from tarsy.http.intake.senders import service_account
from tarsy.plan.matching import InvalidMatcher, check_matcher, matches
from tarsy.resources.meta import ObjectMeta
from tarsy.resources.parse import parse_object
from tarsy.resources.v1alpha1 import AlertRoute
from tarsy.resources.v1alpha1.alert_route import Matcher

NOON = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)


def route(name="r", **spec):
    return AlertRoute.model_validate(
        {"kind": "AlertRoute", "metadata": ObjectMeta(name=name, namespace="shop", uid="u"), "spec": spec}
    )


def alert(minute=0, status="firing", **labels):
    return {"status": status, "labels": labels, "startsAt": f"2026-01-01T12:{minute:02}:00Z"}


def alertmanager(*alerts, status="firing", **more):
    document = {"version": "4", "groupKey": "key", "status": status, "alerts": list(alerts)} | more
    return parse_body("alertmanager", json.dumps(document).encode())


def read(body, **spec):
    return body.read(route(**spec))


@pytest.mark.parametrize(
    ("type_", "value", "label", "holds"),
    [
        ("=", "db", "db", True),
        ("=", "db", "dbx", False),
        ("=", "", None, True),
        ("!=", "db", "web", True),
        ("!=", "db", "db", False),
        ("!=", "db", None, True),
        ("=~", "d.|web", "db", True),
        ("=~", "d.|web", "dbx", False),
        ("=~", "d.|web", "xdb", False),
        ("=~", ".*", None, True),
        ("=~", ".+", None, False),
        ("!~", "d.", "db", False),
        ("!~", "d.", "xdb", True),
        ("!~", ".+", None, True),
    ],
)
def test_matcher_is_as_in_alertmanager(type_, value, label, holds):
    matcher = Matcher(name="team", match_type=type_, value=value)
    assert matches(matcher, {} if label is None else {"team": label}) is holds


@pytest.mark.parametrize("expression", ["(?=x)", "(", r"(a)\1", "x" * 3 + "{1001}"])
def test_expression_that_is_not_of_re2_is_refused_by_a_sentence(expression):
    with pytest.raises(InvalidMatcher) as refused:
        check_matcher(Matcher(name="a", match_type="=~", value=expression))
    assert refused.value.sentence.startswith("RE2 does not accept this expression: ")
    check_matcher(Matcher(name="a", match_type="=", value=expression))


def test_route_sees_what_the_firing_alerts_have_in_common():
    body = alertmanager(
        alert(5, alertname="Disk", team="db", node="a"),
        alert(3, alertname="Disk", team="db", node="b"),
        alert(1, "resolved", alertname="Disk", team="web"),
    )
    said = read(body)
    assert dict(said.labels) == {"alertname": "Disk", "team": "db", "__source__": "alertmanager"}
    assert said.differing == {"node"}
    assert (said.first.minute, said.last.minute, said.firing, said.alert_type) == (3, 5, True, "Disk")


def test_truncated_group_has_the_labels_that_alertmanager_says():
    body = alertmanager(alert(alertname="Disk", node="a"), truncatedAlerts=3, commonLabels={"alertname": "Disk"})
    assert "node" not in read(body).labels


def test_type_is_that_of_the_alert_that_fires_longest_where_they_differ():
    assert read(alertmanager(alert(5, alertname="Late"), alert(3, alertname="Early"))).alert_type == "Early"


@pytest.mark.parametrize(
    ("name", "type_"),
    [("Disk Full", "Disk Full"), ("ü-disk!", "_-disk_"), ("- ", None), ("", None), ("a" * 300, "a" * 253)],
)
def test_type_is_made_of_what_a_type_may_have(name, type_):
    assert read(alertmanager(alert(alertname=name))).alert_type == type_


@pytest.mark.parametrize(
    ("label", "severity"),
    [("critical", "Critical"), ("WARNING", "Warning"), ("info", "Info"), ("none", "Info"), ("page", None)],
)
def test_severity_is_that_of_the_label(label, severity):
    assert read(alertmanager(alert(alertname="a", severity=label))).severity == severity


def test_group_is_that_of_the_sender_or_of_the_route():
    body = alertmanager(alert(alertname="a", team="db"))
    assert read(body).group == "key"
    assert json.loads(read(body, groupBy=["team", "zone"]).group) == {"team": "db", "zone": ""}


def test_resolved_group_does_not_fire():
    said = read(alertmanager(alert(3, "resolved", alertname="a"), status="resolved"))
    assert (said.firing, said.first.minute) == (False, 3)


def test_json_without_a_mapping_has_its_scalars_as_labels():
    body = parse_body("json", b'{"team": "db", "n": 1, "x": 1.5, "ok": true, "deep": {"a": 1}, "no": null}')
    labels = {"team": "db", "n": "1", "x": "1.5", "ok": "true", "__source__": "json"}
    assert dict(read(body).labels) == labels


def test_json_pointers_find_members_items_and_escaped_names():
    body = parse_body("json", b'{"a/b": [{"x~y": "Disk"}], "s": "closed", "t": 1767268800, "l": {"k": "v"}}')
    fields = {"alertType": "/a~1b/0/x~0y", "status": "/s", "startsAt": "/t", "labels": "/l", "groupKey": "/l"}
    said = read(body, json=fields)
    assert (said.alert_type, said.firing, said.first, said.labels["k"]) == ("Disk", False, NOON, "v")
    assert said.group == '{"k":"v"}'


@pytest.mark.parametrize("pointer", ["/a/b", "/l/9", "/l/x", "/l/99999999999", "/s/0"])
def test_pointer_that_leads_nowhere_says_nothing(pointer):
    body = parse_body("json", b'{"l": [1], "s": "text"}')
    assert read(body, json={"alertType": pointer, "startsAt": pointer, "groupKey": pointer}).alert_type is None


@pytest.mark.parametrize("value", ['"soon"', "1e300", "true", '"2026-01-01T12:00:00"', "[]"])
def test_time_that_is_none_is_not_known(value):
    body = parse_body("json", f'{{"t": {value}}}'.encode())
    assert read(body, json={"startsAt": "/t"}).first is None


def test_different_bodies_without_a_key_are_about_different_things():
    one, other = (parse_body("json", b'{"a": %d}' % n) for n in (1, 2))
    assert read(one).group != read(other).group
    assert read(one, groupBy=["b"]).group == read(other, groupBy=["b"]).group


@pytest.mark.parametrize(
    ("source", "content", "reason"),
    [
        ("json", b"{'a': 1}", "NotJson"),
        ("json", b'"text"', "Invalid"),
        ("json", b"[" * 2000, "TooDeep"),
        ("json", b'{"a": NaN}', "NotJson"),
        ("text", b"\xc3\x28", "NotUtf8"),
        ("text", b"", "Empty"),
        ("alertmanager", b'{"version": "4"}', "Invalid"),
    ],
)
def test_bad_body_is_told_by_a_word_for_the_ledger(source, content, reason):
    with pytest.raises(BadBody) as bad:
        parse_body(source, content)
    assert bad.value.reason == reason


def test_routes_are_asked_by_precedence_then_by_matchers_then_by_name():
    team = {"name": "team", "value": "db"}
    routes = [
        route("b"),
        route("a"),
        route("narrow", matchers=[team]),
        route("first", precedence=1),
        route("last", precedence=-1, matchers=[team, team]),
    ]
    body = alertmanager(alert(alertname="a", team="db"))
    assert [v.route.metadata.name for v in match_route(routes, body)] == ["first", "narrow", "a", "b", "last"]


@pytest.mark.parametrize(
    ("matcher", "why"),
    [
        ({"name": "team", "value": "web"}, 'team="web" does not match: team is "db"'),
        ({"name": "node", "value": "a"}, 'node="a" does not match: the alerts of the group differ in node'),
        ({"name": "zone", "value": "x"}, 'zone="x" does not match: there is no label zone'),
        ({"name": "team", "matchType": "=~", "value": "("}, "is invalid: RE2 does not accept"),
        ({"name": "team", "matchType": "!=", "value": "web"}, ""),
    ],
)
def test_verdict_says_why_not(matcher, why):
    body = alertmanager(alert(alertname="a", team="db", node="a"), alert(alertname="a", team="db", node="b"))
    (verdict,) = match_route([route(matchers=[matcher])], body)
    assert why in verdict.why_not
    assert verdict.matches is (why == "")


def drafted(text="text", *, in_storm=False, begun=NOON, author=None, alert_type="Disk Full", **spec):
    of = route(**spec)
    said = alertmanager(alert(alertname="Disk Full")).read(of)
    return draft_alert(of, said, alert_type, author or Caller("alice"), text, begun=begun, storm=in_storm)


def test_same_incident_has_the_same_name_and_fits_its_kind():
    one, again, later = drafted(), drafted("other text"), drafted(begun=NOON.replace(minute=1))
    assert one.name == again.name != later.name
    assert one.name.startswith("disk-full-")
    parse_object(one.manifest)


@pytest.mark.parametrize("alert_type", ["_", "a" * 253, "A/b:c.d e", "x" * 39 + "-y"])
def test_name_is_one_whatever_the_type(alert_type):
    parse_object(drafted(alert_type=alert_type).manifest)


def test_routes_do_not_share_groups():
    said = alertmanager(alert(alertname="a")).read(route())
    assert group_hash(route("a"), said) != group_hash(route("b"), said)


@pytest.mark.parametrize(("size", "inline"), [(262_144, True), (262_145, False)])
def test_text_is_in_the_object_as_long_as_it_fits(size, inline):
    made = drafted("é" * (size // 2) + "x" * (size % 2))
    parse_object(made.manifest)
    assert ("data" in made.manifest["spec"], made.body is None) == (inline, inline)


def test_alert_of_a_storm_says_so():
    made = drafted(in_storm=True, storm={"alerts": 7, "seconds": 30})
    assert "AlertRoute shop/r received more than 7 new alerts within 30 seconds" in made.manifest["spec"]["data"]


@pytest.mark.parametrize(
    ("in_storm", "storm", "chain"),
    [
        (False, {"chainRef": {"name": "alert-storm"}}, "pods"),
        (True, {"chainRef": {"name": "alert-storm"}}, "alert-storm"),
        (True, {"alerts": 7}, "pods"),
    ],
)
def test_alert_of_a_storm_takes_the_chain_of_storms(in_storm, storm, chain):
    made = drafted(in_storm=in_storm, storm=storm, chainRef={"name": "pods"})
    assert made.manifest["spec"]["chainRef"] == {"name": chain}
    parse_object(made.manifest)


def test_reader_of_a_route_is_stamped_as_the_account_of_its_own_namespace_and_nobody_else():
    assert "reader" not in drafted().manifest["spec"]
    manifest = drafted(reader={"serviceAccountName": "on-call"}, namespace="bank").manifest
    assert manifest["metadata"]["namespace"] == "bank"
    assert manifest["spec"]["reader"] == {
        "username": "system:serviceaccount:shop:on-call",
        "groups": ["system:serviceaccounts", "system:serviceaccounts:shop", "system:authenticated"],
    }
    assert manifest["spec"]["author"]["username"] == "alice"
    parse_object(manifest)


def test_text_is_without_control_characters():
    assert drafted("a\x00b\x1b[31mc\n").manifest["spec"]["data"] == "ab[31mc\n"


def test_author_has_as_many_groups_as_the_kind_takes():
    groups = ("", *(f"g{n}" for n in range(300)), "x" * 513)
    made = drafted(author=Caller("alice", "1", groups))
    parse_object(made.manifest)
    assert len(made.manifest["spec"]["author"]["groups"]) == 256


def test_sender_with_a_secret_counts_as_the_service_account_of_the_route():
    auth = {"hmac": {"secretRef": {"name": "s", "key": "k"}}, "serviceAccountName": "alerts"}
    caller = service_account(route(auth=auth))
    assert caller.username == "system:serviceaccount:shop:alerts"
    assert "system:serviceaccounts:shop" in caller.groups


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abs"), inner, max_size=3),
    max_leaves=8,
)
POINTERS = st.sampled_from(["/a", "/a/b", "/a/0", "/s", "/b/a/s"])


@given(
    st.dictionaries(st.sampled_from("abs"), JSON, max_size=3),
    st.fixed_dictionaries(
        {}, optional=dict.fromkeys(("alertType", "severity", "labels", "groupKey", "startsAt", "status"), POINTERS)
    ),
)
def test_any_json_is_read_whatever_the_mapping(document, mapping):
    try:
        body = parse_body("json", json.dumps(document).encode())
    except BadBody:
        return
    said = read(body, json=mapping)
    assert said.group and all(isinstance(value, str) for value in said.labels.values())
    assert said.alert_type is None or parse_object(drafted(alert_type=said.alert_type).manifest)
