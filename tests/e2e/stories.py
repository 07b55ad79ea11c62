"""Lists the end-to-end tests that `--quick` runs: one of each story that a user sees. All others are heavy."""

STORIES = (
    "test_bad_configuration.py::test_bad_alert_is_refused_by_the_api_server",
    "test_bad_configuration.py::test_chain_says_all_that_is_missing_at_once_by_field",
    "test_bad_configuration.py::test_run_waits_with_all_reasons_and_starts_when_the_last_one_is_mended",
    "test_bad_models.py::test_failure_names_the_provider_and_why[embedded-401]",
    "test_bad_models.py::test_missing_secret_is_named_with_its_remedy_on_provider_and_run",
    "test_bad_tools.py::test_server_that_does_not_start_degrades_the_evidence_and_not_the_run",
    "test_budget.py::test_a_reached_limit_forces_a_conclusion_and_is_a_condition[embedded-tools]",
    "test_chat.py::test_two_questions_are_answered_in_turn_with_all_that_came_before_as_context",
    "test_commands.py::test_operator_with_an_unusable_database_ends_with_a_sentence",
    "test_commands.py::test_timeline_follows_a_run_to_its_end",
    "test_desired_state.py::test_running_one_concludes_now_although_its_model_hangs",
    "test_desired_state.py::test_running_one_is_cancelled_at_once",
    "test_doors.py::test_a_viewer_reads_the_timeline_at_both_doors_and_no_trace",
    "test_hostile.py::test_an_obeying_model_reaches_no_tool_beyond_the_list_and_shows_nobody_a_secret",
    "test_investigation.py::test_two_stages_with_a_parallel_one_leave_all_five_layers",
    "test_kubectl.py::test_applied_alert_is_waited_for_listed_and_described",
    "test_kubectl.py::test_explain_tells_what_a_field_is_for",
    "test_kubectl.py::test_field_that_does_not_exist_is_refused",
    "test_notifications.py::test_an_end_is_told_and_a_kill_in_the_middle_repeats_it_once_at_most",
    "test_outages.py::test_second_operator_takes_over_when_the_first_is_killed",
    "test_plugin.py::test_an_investigator_submits_follows_asks_why_and_asks_back_and_reads_no_trace",
    "test_providers.py::test_a_run_whose_first_provider_fails_ends_on_the_second_and_tells_it",
    "test_rights.py::test_a_provider_that_the_tenant_names_gets_nothing_that_the_librarys_tools_read"
    "[embedded-fallback-argument]",
)
"""The beginnings of their ids below this folder."""


def why_heavy(nodeid: str) -> str | None:
    """Returns why `--quick` leaves a test out; None: it runs it."""
    below = nodeid.removeprefix("tests/e2e/")
    return None if below.startswith(STORIES) else "another case of a story that make test shows once"
