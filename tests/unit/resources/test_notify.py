"""Whom chains and routes tell, at its limits, and what it is read as."""

import pytest

from for_each import for_each
from tarsy.resources.parse import InvalidResource, parse_object

REF = {"name": "s", "key": "k"}
SLACK = {"channel": "C1", "tokenSecretRef": REF}
WEBHOOK = {"url": "https://hooks.example/in", "signingSecretRef": REF}
STAGES = [{"name": "s", "agents": [{"name": "a"}]}]


def chain(*targets):
    kind = {"apiVersion": "tarsy.dev/v1alpha1", "kind": "Chain", "metadata": {"name": "c", "namespace": "shop"}}
    return kind | {"spec": {"stages": STAGES, "notify": list(targets)}}


def route(*targets):
    kind = {"apiVersion": "tarsy.dev/v1alpha1", "kind": "AlertRoute", "metadata": {"name": "r", "namespace": "shop"}}
    return kind | {"spec": {"notify": list(targets)}}


def slack(**change):
    return {"name": "t", "slack": SLACK | change}


def webhook(**change):
    return {"name": "t", "webhook": WEBHOOK | change}


def numbered(count):
    return [{"name": f"t-{number}", "slack": SLACK} for number in range(count)]


@for_each("of", [chain, route])
@for_each(
    ("good", "bad"),
    [
        (numbered(8), numbered(9)),
        (numbered(2), [*numbered(1), *numbered(1)]),
        ([slack() | {"name": "n" * 63}], [slack() | {"name": "n" * 64}]),
        ([slack(channel="c" * 80)], [slack(channel="c" * 81)]),
        ([slack(channel="#alerts")], [slack(channel="")]),
        ([slack(channel="C0123456789")], [slack(channel="<!here>")]),
        ([slack(tokenSecretRef=REF)], [slack(tokenSecretRef={"name": "s"})]),
        ([slack(apiUrl="https://slack-gov.com/api")], [slack(apiUrl="ftp://x")]),
        ([webhook(url="https://h/" + "p" * 2038)], [webhook(url="https://h/" + "p" * 2039)]),
        ([webhook()], [{"name": "t", "webhook": {"url": "https://hooks.example/in"}}]),
        ([slack() | {"when": ["Started"]}], [slack() | {"when": []}]),
        (
            [slack() | {"when": ["Started", "Succeeded", "Failed", "TimedOut", "Cancelled"]}],
            [slack() | {"when": ["Failed", "Failed"]}],
        ),
        ([slack() | {"when": ["Failed"]}], [slack() | {"when": ["failed"]}]),
    ],
)
def test_at_a_limit_a_target_is_good_and_beyond_it_is_not(of, good, bad):
    parse_object(of(*good))
    with pytest.raises(InvalidResource):
        parse_object(of(*bad))


@pytest.mark.parametrize("of", [chain, route])
def test_what_is_not_said_is_the_ends_that_concern_people(of):
    (target,) = parse_object(of(slack())).spec.notify
    assert target.when == ("Succeeded", "Failed", "TimedOut")
    assert target.slack.api_url == "https://slack.com/api"
    assert parse_object(of()).spec.notify == ()
