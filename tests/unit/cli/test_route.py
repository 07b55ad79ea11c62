"""`tarsy route --dry-run` and `tarsy ledger`, over files and sums."""

import json

import pytest
from typer.testing import CliRunner

from tarsy.cli.main import app
from tarsy.cli.reports.ledger import account_of
from tarsy.store.intake import LedgerLine

ROUTES = """
apiVersion: tarsy.dev/v1alpha1
kind: AlertRoute
metadata: {name: db, namespace: shop}
spec: {matchers: [{name: team, value: db}], severity: Critical}
---
apiVersion: tarsy.dev/v1alpha1
kind: AlertRoute
metadata: {name: all, namespace: shop}
---
apiVersion: tarsy.dev/v1alpha1
kind: AlertRoute
metadata: {name: other, namespace: shop}
spec: {precedence: 1, matchers: [{name: team, matchType: "!~", value: "d.*"}]}
---
apiVersion: tarsy.dev/v1alpha1
kind: AlertRoute
metadata: {name: for-all, namespace: tarsy-library}
spec: {namespace: shop, alertType: Shared}
---
apiVersion: tarsy.dev/v1alpha1
kind: Chain
metadata: {name: disks, namespace: shop}
spec:
  alertTypes: [DiskFull]
  llmProvider: p
  stages: [{name: s, agents: [{name: a}]}]
"""


def notification(status="firing", **labels):
    named = {"alertname": "DiskFull", "team": "db", **labels}
    alert = {"status": status, "labels": named, "startsAt": "2026-01-01T12:00:00Z"}
    return {"version": "4", "groupKey": "g", "status": status, "alerts": [alert]}


@pytest.fixture
def route(tmp_path):
    """Runs the command on a body; exit status and output."""

    def run(body, *arguments, routes=ROUTES, namespace="shop"):
        file, config = tmp_path / "body.json", tmp_path / "routes.yaml"
        file.write_text(body if isinstance(body, str) else json.dumps(body))
        config.write_text(routes)
        options = ["route", "--dry-run", "-f", str(file), "--config", str(config), *arguments]
        options += ["--namespace", namespace] if namespace else []
        done = CliRunner().invoke(app, options)
        return done.exit_code, done.output

    return run


def test_says_which_route_and_chain_and_why_not_the_others(route):
    status, said = route(notification())
    assert status == 0
    assert said.splitlines() == [
        "AlertRoute shop/db matches, if its sender may create Alerts in shop.",
        "  Alert type: DiskFull, severity: Critical",
        "  Chain: shop/disks",
        'AlertRoute shop/other: team!~"d.*" does not match: team is "db"',
        "AlertRoute shop/all: matches too, but shop/db takes precedence",
    ]


def test_is_told_to_programs(route):
    _, said = route(notification(), "-o", "json")
    answer = json.loads(said)
    assert (answer["route"], answer["chain"], answer["fires"]) == ("shop/db", "shop/disks", True)
    assert answer["alert"] == {"namespace": "shop", "alertType": "DiskFull", "severity": "Critical"}
    assert [other["route"] for other in answer["others"]] == ["shop/other", "shop/all"]


def test_without_a_namespace_the_routes_of_the_library_are_asked(route):
    status, said = route(notification(), namespace="")
    assert status == 0
    assert said.startswith("AlertRoute tarsy-library/for-all matches, if its sender may create Alerts in shop.")
    assert "shop/" not in said


def test_namespace_without_routes_takes_nothing(route):
    status, said = route(notification(), namespace="blog")
    assert (status, said) == (1, "No AlertRoute matches: it would be rejected (NoRoute).\n")


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (notification(alertname="Unknown"), "No chain handles it, so it would wait: no Chain in namespace shop"),
        (notification("resolved"), "It is resolved: this is recorded, and not investigated."),
        (notification(tarsy_self="true"), "It would be rejected: it is about TARSy itself"),
    ],
)
def test_says_what_would_become_of_it(route, body, sentence):
    assert sentence in route(body)[1]


def test_json_without_a_type_would_be_rejected(route):
    assert "It would be rejected: the route sets no alertType" in route({"team": "db"}, "--source", "json")[1]


@pytest.mark.parametrize(
    ("body", "sentence"),
    [("{", "not valid JSON"), ('{"version": "1"}', "not a notification of Alertmanager"), ("x" * 1_048_577, "413")],
)
def test_body_that_cannot_be_read_is_a_sentence(route, body, sentence):
    status, said = route(body)
    assert status == 1
    assert sentence in said and "Traceback" not in said


def test_wrong_configuration_is_a_sentence(route):
    status, said = route(notification(), routes=ROUTES.replace("severity: Critical", "severity: Bad"))
    assert status == 1
    assert "spec.severity" in said


def test_file_that_is_not_there_is_a_sentence(tmp_path):
    done = CliRunner().invoke(app, ["route", "--dry-run", "-f", str(tmp_path / "gone"), "--config", str(tmp_path)])
    assert done.exit_code == 1
    assert "cannot be read" in done.output


def test_without_dry_run_nothing_is_sent(tmp_path):
    done = CliRunner().invoke(app, ["route", "-f", str(tmp_path / "body")])
    assert done.exit_code == 2


LINES = [
    LedgerLine("folded", "Repeat", False, 5, 1),
    LedgerLine("folded", "Storm", False, 2, 0),
    LedgerLine("investigated", "NewIncident", False, 3, 2),
    LedgerLine("rejected", "NoRoute", False, 1, 0),
    LedgerLine("resolved", "Resolved", False, 2, 0),
]


def test_ledger_balances_when_every_alert_is_there():
    account = account_of(LINES, 0)
    assert account["received"] == 13 == sum(account[f] for f in ("investigated", "folded", "resolved", "rejected"))
    assert (account["balances"], account["owed"], account["resends"]) == (True, 0, 3)


def test_ledger_does_not_balance_while_an_alert_is_owed():
    account = account_of([*LINES, LedgerLine("investigated", "NewIncident", True, 1, 0)], 0)
    assert (account["received"], account["investigated"], account["owed"], account["balances"]) == (14, 3, 1, False)


def test_ledger_does_not_balance_where_an_incident_was_opened_twice():
    assert account_of(LINES, 1)["balances"] is False


def test_empty_ledger_balances():
    assert account_of([], 0)["balances"] is True
