"""AlertRoute at its limits, and what it is read as."""

import pytest

from for_each import for_each
from tarsy.resources.parse import InvalidResource, parse_object
from tarsy.resources.v1alpha1.alert_route import JsonFields, Storm

REF = {"name": "s", "key": "k"}
MATCHER = {"name": "team", "value": "db"}


def route(**spec):
    meta = {"name": "r", "namespace": "shop"}
    return {"apiVersion": "tarsy.dev/v1alpha1", "kind": "AlertRoute", "metadata": meta, "spec": spec}


def matcher(**change):
    return route(matchers=[MATCHER | change])


def basic(**change):
    return route(auth={"basic": {"username": "a", "passwordSecretRef": REF} | change})


def signed(**change):
    return route(auth={"hmac": {"secretRef": REF} | change})


def alert(**spec):
    meta = {"name": "a"}
    kind = {"apiVersion": "tarsy.dev/v1alpha1", "kind": "Alert", "metadata": meta}
    return kind | {"spec": {"alertType": "a", "data": "x"} | spec}


def recorded(**change):
    return {
        **alert(),
        "spec": {"alertType": "a", "dataFrom": {"record": {"digest": "0" * 64, "sizeBytes": 1} | change}},
    }


@for_each(
    ("good", "bad"),
    [
        (route(matchers=[MATCHER] * 32), route(matchers=[MATCHER] * 33)),
        (matcher(name="n" * 253), matcher(name="n" * 254)),
        (matcher(name="__source__"), matcher(name="")),
        (matcher(name="app.kubernetes.io/name"), matcher(name="a b")),
        (matcher(value="v" * 1024), matcher(value="v" * 1025)),
        (matcher(value=""), matcher(value=None)),
        *((matcher(matchType=good), matcher(matchType="==")) for good in ("=", "!=", "=~", "!~")),
        *((route(precedence=at), route(precedence=beyond)) for at, beyond in ((-1000, -1001), (1000, 1001))),
        (route(namespace="n" * 63), route(namespace="n" * 64)),
        (route(alertType="t" * 253), route(alertType="t" * 254)),
        (route(chainRef={"name": "c"}), route(chainRef={})),
        *((route(severity=good), route(severity="critical")) for good in ("Critical", "Warning", "Info")),
        (route(budget={"tokens": 1}), route(budget={"tokens": 0})),
        (route(groupBy=[f"l{n}" for n in range(16)]), route(groupBy=[f"l{n}" for n in range(17)])),
        (route(groupBy=["a", "b"]), route(groupBy=["a", "a"])),
        *(
            (route(json={field: good}), route(json={field: bad}))
            for field in ("alertType", "severity", "labels", "groupKey", "startsAt", "status")
            for good, bad in (("/a/0/~1b", "a"), ("/" + "a" * 511, "/" + "a" * 512), ("/", "/~2"))
        ),
        *(
            (route(json={"resolvedValues": good}), route(json={"resolvedValues": bad}))
            for good, bad in (
                ([f"v{n}" for n in range(16)], [f"v{n}" for n in range(17)]),
                (["v" * 64], ["v" * 65]),
                (["v"], [""]),
                (["a", "b"], ["a", "a"]),
            )
        ),
        (basic(username="u" * 253), basic(username="u" * 254)),
        (basic(username="a-b_c.d@e"), basic(username="a:b")),
        (basic(username="a"), basic(username="a b")),
        (basic(), basic(passwordSecretRef={"name": "s"})),
        (signed(header="X-" + "a" * 126), signed(header="X-" + "a" * 127)),
        (signed(header="X-Signature"), signed(header="X Signature")),
        (signed(), signed(secretRef={"key": "k"})),
        (
            route(auth={"hmac": {"secretRef": REF}, "serviceAccountName": "a" * 253}),
            route(auth={"hmac": {"secretRef": REF}, "serviceAccountName": "a" * 254}),
        ),
        *((route(storm={"alerts": at}), route(storm={"alerts": no})) for at, no in ((1, 0), (10_000, 10_001))),
        *((route(storm={"seconds": at}), route(storm={"seconds": no})) for at, no in ((1, 0), (3600, 3601))),
        *((alert(severity=good), alert(severity="High")) for good in ("Critical", "Warning", "Info")),
        (alert(budget={"toolCalls": 1}), alert(budget={"toolCalls": 0})),
        (recorded(digest="a" * 64), recorded(digest="a" * 63)),
        (recorded(digest="9" * 64), recorded(digest="A" * 64)),
        *((recorded(sizeBytes=at), recorded(sizeBytes=no)) for at, no in ((1, 0), (8_388_608, 8_388_609))),
        (recorded(preview="p" * 1024), recorded(preview="p" * 1025)),
    ],
)
def test_at_a_limit_it_is_good_and_beyond_it_is_not(good, bad):
    parse_object(good)
    with pytest.raises(InvalidResource):
        parse_object(bad)


def test_route_without_anything_takes_every_alert():
    spec = parse_object(route()).spec
    assert (spec.matchers, spec.precedence, spec.namespace, spec.auth, spec.storm) == ((), 0, None, None, None)


def test_what_is_not_said_is_the_documented_default():
    assert (Storm().alerts, Storm().seconds) == (20, 60)
    assert JsonFields().resolved_values == ("closed", "ok", "resolved")
    assert parse_object(signed()).spec.auth.hmac.header == "X-Hub-Signature-256"
    assert parse_object(basic()).spec.auth.service_account_name == "default"
