"""Lists the tests that `--api both` shows on the embedded Kubernetes API only, as `once(reason)` does, with the reason.

What a real API server decides stays on both: rights, admission, watches, apply, CRDs, one investigation as a whole, one
crash. Most of `FOLDERS` is about models, tools, the record or our own HTTP API: there only `ON_BOTH` is shown on both.
Elsewhere all is, but what `ONCE` lists. `--api real` shows everything on a real one.

Of the tests that need Kubernetes 1.30, `--api newer` leaves out what `NOT_ON_NEWER` lists.
"""

_PROMOTIONS = "tests/integration/admission/test_promotion.py"
_HISTORY = "it is about the record of changes; others of this folder are shown on both"

FOLDERS = {
    "tests/chaos/": "the API takes no part in it; test_deletion and test_two_active are shown on both",
    "tests/e2e/scenarios/": "the goldens are the same bytes on both; one replay, and what people and schedules do, are "
    "shown on both",
    "tests/e2e/": "it is about models, tools and the record; test_investigation and test_kubectl are shown on both",
    "tests/integration/controllers/": "it is about what controllers decide; test_way_of_an_alert is shown on both",
    "tests/integration/http/": "it is about our own HTTP API; test_authorization and test_writes are shown on both",
    "tests/integration/runbook/": "it is about what controllers decide; test_way_of_an_alert is shown on both",
}
"""The reason by the folder: of the first one that the test's id begins with."""

_ON_BOTH = {
    "tests/chaos/": (
        "test_deletion.py",
        "test_two_active.py",
    ),
    "tests/e2e/": (
        "scenarios/test_calibration.py",
        "scenarios/test_default.py",
        "scenarios/test_outcome.py",
        "scenarios/test_precedents.py",
        "scenarios/test_replay.py::test_every_scenario_replays_byte_for_byte[real-pipeline",
        "scenarios/test_review.py",
        "scenarios/test_schedule.py",
        "scenarios/test_scoring.py",
        "scenarios/test_skills.py",
        "scenarios/test_sub_agents.py",
        "test_accounts.py::test_a_denial",
        "test_accounts.py::test_the_real_server",
        "test_changes_stage.py::test_what_the_author_may_not_list_is_in_no_result[real-True",
        "test_demo.py::test_demo_ends_well",
        "test_demo.py::test_demo_proposes_each_change",
        "test_doors.py::test_a_viewer",
        "test_headlamp.py",
        "test_investigation.py::test_two_stages",
        "test_kubectl.py",
        "test_outages.py::test_api_server",
        "test_outages.py::test_second_operator",
        "test_plugin.py::test_an_investigator_submits",
        "test_quotas.py::test_quota_without_a_limit",
        "test_quotas.py::test_viewer_sees_bars",
        "test_rights.py::test_a_provider_that_the_tenant_names_gets_nothing_that_the_librarys_tools_read"
        "[real-fallback-argument",
        "test_rights.py::test_a_tenants_own_model_with_a_server_that_admits_it_reaches_no_further_than_its_namespace"
        "[real-argument",
    ),
    "tests/integration/controllers/": (
        "test_accepted_tools.py::test_acceptance_counts",
        "test_accepted_tools.py::test_without_the_policy",
        "test_accounts.py::test_rights",
        "test_accounts.py::test_tokens_of_a_run",
        "test_acting_workloads.py::test_each_account",
        "test_acting_workloads.py::test_rights",
        "test_api_writes.py",
        "test_approvals.py::test_a_pre_approval_counts",
        "test_approvals.py::test_approval_counts",
        "test_approvals.py::test_without_the_policy",
        "test_authors.py::test_a_config_map_that_an_alert_names_is_read_only_for_who_may_read_it[real-dataFrom",
        "test_authors.py::test_author_who_may_not",
        "test_authors.py::test_binding",
        "test_bad_input.py::test_alert_with_wrong_data_is_refused",
        "test_bad_input.py::test_invalid_alert",
        "test_compaction.py",
        "test_deletion.py::test_deletion_stops_the_run_in_every_state_and_its_record_stays[real-orphaned",
        "test_deletion.py::test_deletion_stops_the_run_in_every_state_and_its_record_stays[real-running",
        "test_git_cases.py::test_source",
        "test_outages.py::test_outage_of_the_api_server",
        "test_promotion.py::test_override",
        "test_promotion.py::test_revisions_leave",
        "test_promotion.py::test_rights",
        "test_reviews.py::test_only_people",
        "test_rights.py",
        "test_schedules.py::test_the_rights",
        "test_slack.py::test_a_question_in_a_thread",
        "test_slack.py::test_without_the_component",
        "test_tool_workloads.py::test_a_shared_server",
        "test_tool_workloads.py::test_an_object_of_somebody_else",
        "test_tool_workloads.py::test_the_operator_runs_servers_only_where",
        "test_tool_workloads.py::test_what_was_changed_by_hand",
        "test_watch_coverage.py",
        "test_way_of_an_alert.py::test_alert_is_investigated",
        "test_way_of_an_alert.py::test_deletion_of_a_running",
        "test_way_of_an_alert.py::test_finished_objects_expire",
        "test_way_of_an_alert.py::test_investigation_deleted",
        "test_way_of_an_alert.py::test_relist",
        "test_way_of_an_alert.py::test_two_active",
    ),
    "tests/integration/http/": (
        "test_approvals.py::test_decision_is_written",
        "test_approvals.py::test_plugin",
        "test_approvals.py::test_sentence_of_the_policy",
        "test_authorization.py",
        "test_doors.py",
        "test_evidence.py::test_kubectl",
        "test_evidence.py::test_the_right",
        "test_evidence.py::test_who_may_list",
        "test_evidence.py::test_with_the_component",
        "test_evidence.py::test_without_the_component",
        "test_following_through_kubernetes.py",
        "test_precedents.py::test_precedents_of_another_namespace",
        "test_reviews.py::test_several",
        "test_scores.py::test_another_score",
        "test_writes.py::test_a_question_is_asked_as_its_caller",
        "test_writes.py::test_a_replay_is_created_as_its_caller",
        "test_writes.py::test_an_alert_is_created_as_its_caller",
        "test_writes.py::test_an_investigation_is",
        "test_writes.py::test_many_equal_requests",
        "test_writes.py::test_what_the_kubernetes_api_says",
        "test_writes.py::test_who_may_not",
    ),
}
ON_BOTH = tuple(folder + begins for folder, tests in _ON_BOTH.items() for begins in tests)
"""The beginnings of the ids of tests in `FOLDERS` that are shown on both."""

_CHANGES = (
    "a_namespace_of_the_same_name",
    "a_storm",
    "kinds_that_the_reader",
    "partitions",
    "purge",
    "text_of_the_purge",
    "the_oldest_versions",
    "the_purge_command",
)
"""All but rights and watches."""

ONCE = {
    **{
        f"{_PROMOTIONS}::test_who_may_not_promote_overrides_and_loosens_nothing[real-{name}": "another is shown on both"
        for name in ("own", "removed", "suite")
    },
    "tests/integration/manifests/test_rights.py": "controllers/test_rights is shown on both",
    "tests/integration/admission/test_webhook.py::test_what_is_no_review": "no API server sends such a request",
    **{
        f"tests/integration/cli/test_evidence.py::test_{name}": "others of this file are shown on both"
        for name in ("a_namespace_that", "a_target_that", "changes_rank", "triage_of")
    },
    **{f"tests/integration/history/test_limits.py::test_{name}": _HISTORY for name in _CHANGES},
}
"""The reason by the beginning of the test's id, elsewhere."""

_BUILT_IN = "what it reads and writes is of kinds that the embedded API serves there too"
_APPLIED = "test_overlays applies the same objects there"
_ACTING = "scenarios/test_approvals and test_action_stage, and test_demo, are shown there"

NOT_ON_NEWER = {
    "tests/chaos/test_gate.py": _ACTING,
    "tests/e2e/scenarios/test_action_stage.py::test_the_record_wins": "the other scenario of this file is shown there",
    "tests/e2e/test_action_stage.py": _ACTING,
    "tests/integration/admission/test_registrations.py": _BUILT_IN,
    "tests/integration/cli/test_incidents.py": _BUILT_IN,
    "tests/integration/controllers/test_approvals.py::test_a_pre_approval_in_doubt": "a controller decides it",
    "tests/integration/controllers/test_approvals.py::test_two_approvals": "a controller decides it",
    "tests/integration/manifests/test_charts.py": _APPLIED,
    "tests/integration/manifests/test_gitops.py": _APPLIED,
    "tests/integration/manifests/test_manifests.py": _APPLIED,
}
"""Why a test that needs Kubernetes 1.30 is not repeated on 1.36, by the beginning of its id."""


def why_once(nodeid: str) -> str | None:
    """Returns why a test is not repeated on a real API server; None: it is."""
    if nodeid.startswith(ON_BOTH):
        return None
    return _first(ONCE, nodeid) or _first(FOLDERS, nodeid)


def why_not_on_newer(nodeid: str) -> str | None:
    """Returns why a test that needs Kubernetes 1.30 is not repeated on 1.36; None: it is."""
    return _first(NOT_ON_NEWER, nodeid)


def _first(reasons: dict[str, str], nodeid: str) -> str | None:
    return next((reason for begins, reason in reasons.items() if nodeid.startswith(begins)), None)
