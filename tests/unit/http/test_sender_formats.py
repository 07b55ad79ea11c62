"""Tests the formats of senders: what starts an incident, what ends it, what is none, and what routes can match."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from for_each import for_each
from tarsy.http.intake.bodies import parse_body
from tarsy.http.intake.formats.notification import BadBody, NotAnIncident
from tarsy.resources.meta import ObjectMeta
from tarsy.resources.v1alpha1 import AlertRoute

ROUTE = AlertRoute(metadata=ObjectMeta(name="r", namespace="shop", uid="u"))
CREATED, LATER = "2026-05-04T01:00:00Z", "2026-05-04T02:30:00Z"


def read(source, document, route=ROUTE):
    return parse_body(source, json.dumps(document).encode()).read(route)


def sample(sender):
    return json.loads((SAMPLES / f"{sender}.json").read_text("utf-8"))


def pagerduty(kind="incident.triggered", **data):
    incident = {
        "id": "Q0ABC",
        "type": "incident",
        "html_url": "https://example.pagerduty.com/incidents/Q0ABC",
        "created_at": CREATED,
        "title": "Checkout answers 500",
        "urgency": "high",
        "service": {"id": "S1", "summary": "checkout"},
        "priority": {"summary": "P1"},
    }
    return {"event": {"id": "e", "event_type": kind, "occurred_at": LATER, "data": incident | data}}


def grafana(*alerts, **more):
    every = [{"status": "firing", "labels": {"alertname": "Slow", "team": "web"}, "startsAt": CREATED}, *alerts]
    return {"version": "1", "groupKey": "{}:{}", "status": "firing", "alerts": every, "orgId": 1, "state": "x"} | more


def datadog(**more):
    return {
        "alert_id": "1234",
        "cycle": "998",
        "transition": "Triggered",
        "title": "Disk is full",
        "priority": "P2",
        "tags": "env:prod,team:db, env:other,plain,:none,empty:",
        "link": "https://app.datadoghq.com/event/1",
    } | more


def argocd(**more):
    said = {"application": "shop", "namespace": "argocd", "health": "Degraded", "phase": "Succeeded"}
    return said | {"destinationNamespace": "shop-prod", "project": "web", "sync": "Synced"} | more


def flux(**more):
    about = {"kind": "Kustomization", "name": "apps", "namespace": "flux-system", "uid": "x"}
    said = {"involvedObject": about, "severity": "error", "reason": "HealthCheckFailed", "message": "timeout"}
    return said | {"timestamp": LATER, "metadata": {"revision": "main@sha1:abc"}} | more


EVERY = {
    "pagerduty": (pagerduty(), "Q0ABC", "PagerDutyIncident", "Critical"),
    "grafana": (grafana(), "{}:{}", "Slow", None),
    "datadog": (datadog(), "1234/998", "DatadogMonitor", "Critical"),
    "argocd": (argocd(), "argocd/shop", "ArgoCDApplication", None),
    "flux": (flux(), "Kustomization/flux-system/apps", "FluxReconciliation", None),
}


@pytest.mark.parametrize("source", EVERY)
def test_a_trigger_fires_with_group_type_and_severity(source):
    document, group, alert_type, severity = EVERY[source]
    said = read(source, document)
    assert (said.firing, said.group, said.alert_type, said.severity) == (True, group, alert_type, severity)
    assert said.labels["__source__"] == source


SAMPLES = Path(__file__).parents[3] / "docs" / "assets" / "senders"


def test_there_is_a_sample_of_each_sender_whose_labels_a_route_can_match():
    assert {path.stem for path in SAMPLES.iterdir()} == set(EVERY)
    assert {name: read(name, sample(name)).labels for name in EVERY} == {
        "pagerduty": read("pagerduty", pagerduty()).labels | {"__source__": "pagerduty"},
        "grafana": {
            "alertname": "CheckoutSlow",
            "namespace": "shop",
            "deployment": "checkout",
            "__source__": "grafana",
        },
        "datadog": {
            "env": "prod",
            "team": "db",
            "role": "orders",
            "monitor": "1234",
            "title": "[Triggered] Disk of the orders database is full",
            "priority": "P2",
            "scope": "role:orders",
            "url": "https://app.datadoghq.com/monitors/1234",
            "__source__": "datadog",
        },
        "argocd": {
            "application": "shop",
            "namespace": "shop",
            "project": "web",
            "health": "Degraded",
            "phase": "Succeeded",
            "sync": "Synced",
            "revision": "5e4bd7c0",
            "__source__": "argocd",
        },
        "flux": {
            "kind": "Kustomization",
            "name": "shop",
            "namespace": "flux-system",
            "reason": "HealthCheckFailed",
            "controller": "kustomize-controller",
            "revision": "main@sha1:5e4bd7c0",
            "__source__": "flux",
        },
    }


@pytest.mark.parametrize("source", EVERY)
def test_a_sample_fires_as_its_sender_does(source):
    said = read(source, sample(source))
    assert (said.firing, said.alert_type) == (True, "CheckoutSlow" if source == "grafana" else EVERY[source][2])


@pytest.mark.parametrize("key", ["revision", "kustomize.toolkit.fluxcd.io/revision", "helm.toolkit.fluxcd.io/revision"])
def test_flux_names_the_revision_with_or_without_the_group_of_its_object(key):
    more = {"kustomize.toolkit.fluxcd.io/originRevision": "other", "commit_status": "update"}
    assert read("flux", flux(metadata={key: "main@sha1:abc"} | more)).labels["revision"] == "main@sha1:abc"


@pytest.mark.parametrize("source", EVERY)
def test_a_label_of_the_sender_does_not_replace_the_source(source):
    document, *_ = EVERY[source]
    forged = json.loads(json.dumps(document).replace("team", "__source__"))
    assert read(source, forged).labels["__source__"] == source


@pytest.mark.parametrize("source", EVERY)
def test_a_route_may_group_by_labels(source):
    by = AlertRoute.model_validate(ROUTE.model_dump(by_alias=True) | {"spec": {"groupBy": ["namespace"]}})
    said = read(source, EVERY[source][0], by)
    assert json.loads(said.group) == {"namespace": said.labels.get("namespace", "")}


@for_each("source", EVERY)
@for_each("document", [{}, {"event": None}, {"event": {"event_type": "incident.triggered"}}])
def test_another_object_is_refused_with_the_field(source, document):
    with pytest.raises(BadBody) as bad:
        read(source, document)
    assert bad.value.reason == "Invalid"
    assert bad.value.message.startswith("the body is not a")


@pytest.mark.parametrize("kind", ["acknowledged", "escalated", "priority_updated", "unacknowledged", "reassigned"])
def test_what_people_do_with_an_incident_of_pagerduty_belongs_to_it(kind):
    began, since = read("pagerduty", pagerduty()), read("pagerduty", pagerduty(f"incident.{kind}"))
    assert (since.group, since.first, since.firing) == (began.group, began.first, True)


def test_an_incident_of_pagerduty_that_is_opened_again_starts_anew():
    began, again = read("pagerduty", pagerduty()), read("pagerduty", pagerduty("incident.reopened"))
    assert again.group == began.group
    assert began.first == datetime(2026, 5, 4, 1, tzinfo=UTC)
    assert again.first == datetime(2026, 5, 4, 2, 30, tzinfo=UTC)


def test_the_labels_of_pagerduty_are_those_a_route_needs():
    assert read("pagerduty", pagerduty()).labels == {
        "incident": "Q0ABC",
        "title": "Checkout answers 500",
        "url": "https://example.pagerduty.com/incidents/Q0ABC",
        "urgency": "high",
        "service": "checkout",
        "priority": "P1",
        "__source__": "pagerduty",
    }


@pytest.mark.parametrize(("urgency", "severity"), [("high", "Critical"), ("low", "Warning"), (None, None)])
def test_urgency_is_severity(urgency, severity):
    assert read("pagerduty", pagerduty(urgency=urgency)).severity == severity


@pytest.mark.parametrize(
    ("source", "document"),
    [
        ("pagerduty", pagerduty("incident.resolved")),
        ("grafana", grafana(status="resolved")),
        ("datadog", datadog(transition="Recovered")),
        ("argocd", argocd(health="Healthy")),
        ("argocd", argocd(health="Healthy", phase="")),
        ("flux", flux(severity="info", reason="ReconciliationSucceeded")),
    ],
)
def test_the_end_of_an_incident_is_resolved_in_its_group(source, document):
    said = read(source, document)
    assert (said.firing, said.group) == (False, EVERY[source][1])


@pytest.mark.parametrize(
    ("source", "document"),
    [
        ("pagerduty", {"event": {"event_type": "pagey.ping", "data": {"message": "Hello"}}}),
        ("pagerduty", pagerduty("incident.annotated")),
        ("pagerduty", pagerduty("incident.status_update_published")),
        ("datadog", datadog(transition="Null")),
        ("argocd", argocd(health="Progressing")),
        ("argocd", argocd(health="Healthy", phase="Running")),
        ("argocd", argocd(health="Suspended")),
        ("flux", flux(severity="info", reason="Progressing")),
        ("flux", flux(severity="trace", reason="DependencyNotReady")),
    ],
)
def test_comments_tests_and_progress_are_no_incidents(source, document):
    with pytest.raises(NotAnIncident):
        read(source, document)


@pytest.mark.parametrize("transition", ["Re-Triggered", "No Data", "Re-No Data", "Warn", "Re-Warn", "Renotify"])
def test_every_open_transition_of_datadog_fires(transition):
    assert read("datadog", datadog(transition=transition)).firing


@pytest.mark.parametrize(("phase", "firing"), [("Failed", True), ("Error", True)])
def test_a_failed_sync_of_a_healthy_application_fires(phase, firing):
    assert read("argocd", argocd(health="Healthy", phase=phase)).firing is firing


def test_the_first_tag_of_a_name_is_its_label():
    labels = read("datadog", datadog()).labels
    assert (labels["env"], labels["team"]) == ("prod", "db")
    assert not {"plain", "", "empty"} & labels.keys()


def test_a_tag_of_datadog_does_not_replace_a_field():
    assert read("datadog", datadog(tags="monitor:other")).labels["monitor"] == "1234"


def test_grafana_is_not_taken_for_alertmanager():
    with pytest.raises(BadBody):
        read("alertmanager", grafana())
    with pytest.raises(BadBody):
        read("grafana", grafana(version="4"))


def test_alerts_of_grafana_that_differ_in_a_label_have_it_in_common_no_more():
    other = {"status": "firing", "labels": {"alertname": "Slow", "team": "db"}, "startsAt": LATER}
    said = read("grafana", grafana(other))
    assert "team" not in said.labels
    assert said.differing == {"team"}
