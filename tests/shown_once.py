"""Lists the tests that `--api both` shows on the embedded Kubernetes API only, as `once(reason)` does, with the reason.

What a real API server decides stays on both: rights, admission, watches, apply, CRDs, one investigation as a whole, one
crash. The rest of these files is about models, tools, the record or our own HTTP API. `--api real` shows them too.
"""

_CRASHES = "the API takes no part in it; chaos/test_deletion and test_two_active are shown on both"
_RECORD = "it is about models, tools and the record; test_investigation is shown on both"
_HTTP = "it is about our own HTTP API; test_authorization and test_writes are shown on both"
_CONTROLLERS = "it is about what controllers decide; test_way_of_an_alert and test_bad_input are shown on both"
_BINDING = "plans and our tool calls bind a run, no API does; the bindings by argument are shown on both"
_WAITS = "another scenario is shown on both"
_DEMO = "others of this file are shown on both"
_HISTORY = "it is about the record of changes; others of this folder are shown on both"
_SCENARIOS = (
    "approvals",
    "budget",
    "cancellation",
    "chat",
    "conclude",
    "concurrency",
    "masking",
    "native_thinking",
    "pipeline",
    "react",
    "replay_coverage",
    "resilience",
    "skills",
    "sub_agents",
    "timeout",
    "tool_policy",
)
"""All but test_replay: that a replay is byte-equal is shown on both."""
_REPLAYED = (
    "budget",
    "cancellation",
    "conclude",
    "concurrency",
    "propagation",
    "resilience",
    "skills",
    "sub-agents",
    "timeout",
    "tool-policy",
)
"""All but one, which has stages and agents side by side."""
_PROMOTIONS = (
    "evaluation_that_cannot_start",
    "first_revision_is_made",
    "first_revision_serves",
    "push",
    "regressed_revision",
    "revision_is_compared",
    "second_push",
    "tool_that_is_denied",
)
"""All but restarts, rights, and what leaves with its owner."""
_APPROVALS = ("a_parked_run_that", "end_of_the_run", "people_are_shown", "what_a_parked_run_needs")
_EVIDENCE = (
    "a_caller_has",
    "a_verdict",
    "an_investigation",
    "recorded_changes",
    "what_is_asked",
    "who_may_not_ask",
    "without_pods",
)
"""All but rights and discovery."""
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
_SLACK = (
    "a_list",
    "a_person",
    "a_question_of",
    "a_replica",
    "a_reply",
    "a_text",
    "an_answer",
    "an_event",
    "an_investigation",
    "more",
    "nothing",
    "one_whom",
    "only_the_active",
    "other_threads",
    "secrets",
)
"""All but a question as a whole, and rights."""
_TRIAGES = ("a_namespace_that", "a_target_that", "changes_rank", "triage_of")

ONCE = {
    "tests/chaos/test_kill.py": _CRASHES,
    **{f"tests/e2e/scenarios/test_{name}.py": "the goldens are the same bytes on both" for name in _SCENARIOS},
    "tests/e2e/scenarios/test_kept_in.py": _RECORD,
    "tests/e2e/scenarios/test_replay.py::test_what_is_not_on_record": _RECORD,
    **{
        f"tests/e2e/scenarios/test_replay.py::test_every_scenario_replays_byte_for_byte[real-{name}": _WAITS
        for name in _REPLAYED
    },
    "tests/e2e/test_bad_configuration.py": _CONTROLLERS,
    "tests/e2e/test_bad_models.py": _RECORD,
    "tests/e2e/test_bad_tools.py": _RECORD,
    "tests/e2e/test_budget.py": _RECORD,
    "tests/e2e/test_changes_stage.py::test_a_replay": _RECORD,
    "tests/e2e/test_chat.py": _RECORD,
    "tests/e2e/test_commands.py": _RECORD,
    "tests/e2e/test_demo.py::test_demo_that_is_interrupted": _DEMO,
    "tests/e2e/test_demo.py::test_dev_keeps_objects_and_record_where_it_is_told[real-2]": _DEMO,
    "tests/e2e/test_demo.py::test_dev_serves_who_is_at_the_machine_until_ctrl_c_and_leaves_nothing": _DEMO,
    "tests/e2e/test_desired_state.py": _RECORD,
    "tests/e2e/test_evals.py": _RECORD,
    "tests/e2e/test_hostile.py": _RECORD,
    "tests/e2e/test_killed_tools.py": _RECORD,
    "tests/e2e/test_limits.py": _RECORD,
    "tests/e2e/test_metrics.py": _RECORD,
    "tests/e2e/test_outages.py::test_postgres": _RECORD,
    "tests/e2e/test_outages.py::test_two_operators": _CRASHES,
    "tests/e2e/test_provider_limits.py": _RECORD,
    "tests/e2e/test_providers.py": _RECORD,
    "tests/e2e/test_rights.py::test_a_chain_says": _BINDING,
    "tests/e2e/test_rights.py::test_a_provider_that_the_tenant_names_gets_nothing_that_the_librarys_tools_read"
    "[real-fallback-server": _BINDING,
    "tests/e2e/test_rights.py::test_a_provider_that_the_tenant_names_gets_nothing_that_the_librarys_tools_read"
    "[real-summarization": _BINDING,
    "tests/e2e/test_rights.py::test_a_tenants_own_model_with_a_server_that_admits_it_reaches_no_further_than_its_namespace"
    "[real-server": _BINDING,
    "tests/e2e/test_rights.py::test_the_owner_of_the_server": _BINDING,
    "tests/e2e/test_rights.py::test_where_the_chain_names_no_provider": _BINDING,
    "tests/e2e/test_upgrade.py": "both versions ask the API as any client does",
    "tests/e2e/test_workers.py": _RECORD,
    "tests/integration/controllers/test_acceptance.py": _CONTROLLERS,
    "tests/integration/controllers/test_alert_routes.py": _CONTROLLERS,
    **{f"tests/integration/controllers/test_approvals.py::test_{name}": _CONTROLLERS for name in _APPROVALS},
    "tests/integration/controllers/test_at_rest.py": _CONTROLLERS,
    "tests/integration/controllers/test_chat.py": _CONTROLLERS,
    "tests/integration/controllers/test_deletion.py::test_time_to_live": _CONTROLLERS,
    "tests/integration/controllers/test_evals.py": _CONTROLLERS,
    "tests/integration/controllers/test_incident_keys.py": _CONTROLLERS,
    "tests/integration/controllers/test_notification_targets.py": _CONTROLLERS,
    **{f"tests/integration/controllers/test_promotion.py::test_{name}": _CONTROLLERS for name in _PROMOTIONS},
    "tests/integration/controllers/test_precedents.py": _CONTROLLERS,
    "tests/integration/controllers/test_readiness.py": _CONTROLLERS,
    "tests/integration/controllers/test_replays.py": _CONTROLLERS,
    "tests/integration/controllers/test_skills.py": _CONTROLLERS,
    **{f"tests/integration/controllers/test_slack.py::test_{name}": _CONTROLLERS for name in _SLACK},
    "tests/integration/controllers/test_scoring.py": _CONTROLLERS,
    "tests/integration/controllers/test_sweep.py": _CONTROLLERS,
    "tests/integration/controllers/test_tool_servers.py": _CONTROLLERS,
    **{f"tests/integration/cli/test_evidence.py::test_{name}": _DEMO for name in _TRIAGES},
    **{f"tests/integration/history/test_limits.py::test_{name}": _HISTORY for name in _CHANGES},
    "tests/integration/http/test_configuration.py": _HTTP,
    "tests/integration/http/test_evals.py": _HTTP,
    **{f"tests/integration/http/test_evidence.py::test_{name}": _HTTP for name in _EVIDENCE},
    "tests/integration/http/test_intake.py": _HTTP,
    "tests/integration/http/test_investigations.py": _HTTP,
    "tests/integration/http/test_mcp_endpoint.py": _HTTP,
    "tests/integration/http/test_openapi.py": _HTTP,
    "tests/integration/http/test_plans.py": _HTTP,
    "tests/integration/http/test_runbooks.py": _HTTP,
    "tests/integration/http/test_schedules.py": _HTTP,
    "tests/integration/http/test_skills.py": _HTTP,
    "tests/integration/http/test_timeline_api.py": _HTTP,
    "tests/integration/http/test_unstarted.py": _HTTP,
    "tests/integration/runbook/test_acceptance.py": _CONTROLLERS,
}
"""The reason by the beginning of the test's id: a folder, a file, or tests of a file."""


def why_once(nodeid: str) -> str | None:
    """Returns why a test is not repeated on a real API server; None: it is."""
    return next((reason for begins, reason in ONCE.items() if nodeid.startswith(begins)), None)
