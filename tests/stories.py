"""Lists the tests that `--quick` runs of folders whose tests are expensive: one of each story that a user sees.

All others of these folders are heavy; their decisions have unit tests, which are quick.
"""

END_TO_END = (
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
    "test_outages.py::test_second_operator_takes_over_when_the_first_is_killed",
    "test_plugin.py::test_an_investigator_submits_follows_asks_why_and_asks_back_and_reads_no_trace",
    "test_providers.py::test_a_run_whose_first_provider_fails_ends_on_the_second_and_tells_it",
    "test_rights.py::test_a_provider_that_the_tenant_names_gets_nothing_that_the_librarys_tools_read"
    "[embedded-fallback-argument]",
)
"""The beginnings of their ids below `tests/e2e`."""

CONTROLLERS = (
    "test_acceptance.py::test_a_run_with_an_unknown_server_ends_as_not_accepted_and_its_alert_tells",
    "test_accepted_tools.py::test_a_tool_that_comes_or_changes_is_withheld_and_what_changed_is_known_across_restarts",
    "test_accounts.py::test_secret_of_a_run_that_ended_while_no_controller_was_there_is_found",
    "test_acting_workloads.py::test_each_account_of_a_run_has_a_workload_with_a_token_that_ends_with_the_run",
    "test_alert_routes.py::test_repeats_and_the_end_are_told_on_the_alert_and_stay_when_it_is_finished",
    "test_alert_routes.py::test_route_is_usable_and_tells_what_it_took",
    "test_api_writes.py::test_investigation_of_two_stages_and_a_summary_is_eight_writes",
    "test_approvals.py::test_approval_counts_while_policy_rights_and_server_are_as_they_were",
    "test_approvals.py::test_rejection_expiry_and_deletion_end_the_wait",
    "test_at_rest.py::test_what_was_changed_while_no_operator_ran_is_put_right_at_the_start",
    "test_authors.py::test_author_who_may_not_use_the_chain_waits_until_they_may",
    "test_authors.py::test_run_of_an_alert_is_its_authors_in_object_and_record",
    "test_bad_input.py",
    "test_chat.py::test_question_is_queued_owned_by_its_investigation_and_answered_in_its_status",
    "test_chat.py::test_question_that_cannot_be_answered_says_why_and_names_what_was_found",
    "test_deletion.py::test_finding_stays_readable_where_the_object_outlives_its_record",
    "test_evals.py::test_candidate_that_regresses_is_told_from_one_that_passes",
    "test_evals.py::test_suite_reports_every_error_at_once",
    "test_git_cases.py::test_what_is_wrong_is_told_for_all_cases_at_once",
    "test_incident_keys.py::test_second_alert_of_a_key_is_folded_and_tells_the_investigation_of_the_first",
    "test_judge.py::test_judge_that_agrees_with_people_decides",
    "test_notification_targets.py",
    "test_precedents.py::test_runs_of_the_same_workload_are_told_to_authors_who_may_read_them",
    "test_promotion.py::test_new_revision_serves_only_after_it_passed",
    "test_readiness.py::test_a_chain_that_cannot_run_says_so_by_field_path",
    "test_replays.py::test_who_may_not_read_the_trace_may_not_replay_it",
    "test_reviews.py::test_a_review_from_claim_to_verdict_outlives_its_objects_and_is_reopened",
    "test_rights.py::test_rights_of_the_manifests_are_enough_for_the_way_of_an_alert",
    "test_schedules.py",
    "test_skills.py::test_a_run_waits_for_the_text_of_a_skill_and_says_which",
    "test_pod_users.py",
    "test_scoring.py::test_what_ends_is_scored_and_nothing_else_changes",
    "test_slack.py::test_a_question_in_a_thread_is_asked_as_its_author_and_answered_there",
    "test_tool_servers.py::test_a_server_that_answers_is_available_with_its_tools_and_is_asked_again_without_a_write",
    "test_tool_workloads.py::test_each_run_under_way_has_a_server_of_its_own_that_its_worker_waits_for_and_that_goes_with_it",
    "test_watch_coverage.py::test_kinds_and_rights_that_come_late_are_watched_without_a_restart",
    "test_way_of_an_alert.py::test_alert_is_investigated_to_its_end_with_few_writes_and_each_event_once",
    "test_way_of_an_alert.py::test_deletion_of_a_running_investigation_cancels_its_run_and_the_record_stays",
    "test_way_of_an_alert.py::test_the_default_chain_takes_an_alert_of_an_unknown_type_when_it_is_old_enough",
)
"""The beginnings of their ids below `tests/integration/controllers`, where each test starts a controller."""

STORIES = {"tests/e2e/": END_TO_END, "tests/integration/controllers/": CONTROLLERS}


def why_heavy(nodeid: str) -> str | None:
    """Returns why `--quick` leaves a test out; None: it runs it."""
    for folder, stories in STORIES.items():
        if nodeid.startswith(folder) and not nodeid.removeprefix(folder).startswith(stories):
            return "another case of a story that make test shows once"
    return None
