"""Conditions keep the time of their last transition."""

from datetime import UTC, datetime, timedelta, timezone

from tarsy.resources.meta import Condition, condition, set_condition

NOON = datetime(2026, 11, 22, 12, 0, 0, 123456, tzinfo=UTC)
LATER = NOON + timedelta(minutes=5)


def ready(status="True", reason="Resolved", message="", **more):
    return Condition(type="Ready", status=status, reason=reason, message=message, **more)


def test_new_condition_is_added_with_the_time_in_whole_seconds():
    (added,) = set_condition((), ready(), NOON)
    assert added.last_transition_time == NOON.replace(microsecond=0)


def test_transition_time_stays_when_only_reason_message_or_generation_change():
    before = set_condition((), ready("False", "AgentNotFound", observed_generation=1), NOON)
    (after,) = set_condition(before, ready("False", "SecretMissing", "create it", observed_generation=2), LATER)
    assert after.last_transition_time == NOON.replace(microsecond=0)
    assert (after.reason, after.message, after.observed_generation) == ("SecretMissing", "create it", 2)


def test_transition_time_moves_when_the_status_changes():
    before = set_condition((), ready("Unknown"), NOON)
    (after,) = set_condition(before, ready("True"), LATER)
    assert after.last_transition_time == LATER.replace(microsecond=0)


def test_other_conditions_and_their_order_stay():
    finished = Condition(type="Finished", status="False", reason="Running")
    both = set_condition(set_condition((), ready(), NOON), finished, NOON)
    changed = set_condition(both, ready("False"), LATER)
    assert [item.type for item in changed] == ["Ready", "Finished"]
    assert changed[1] == both[1]


def test_unchanged_condition_gives_equal_conditions():
    before = set_condition((), ready(), NOON)
    assert set_condition(before, ready(), LATER) == before


def test_condition_is_found_by_type():
    conditions = set_condition((), ready(), NOON)
    assert condition(conditions, "Ready") == conditions[0]
    assert condition(conditions, "Finished") is None


def test_condition_is_written_as_metav1_condition():
    (written,) = set_condition((), ready(observed_generation=3), NOON.astimezone(timezone(timedelta(hours=2))))
    assert written.to_dict() == {
        "type": "Ready",
        "status": "True",
        "reason": "Resolved",
        "observedGeneration": 3,
        "lastTransitionTime": "2026-11-22T12:00:00Z",
    }


def test_empty_message_is_not_written_and_reads_back_as_empty():
    (written,) = set_condition((), ready(), NOON)
    assert "message" not in written.to_dict()
    assert Condition.model_validate(written.to_dict()) == written


def test_long_message_is_cut_and_control_characters_go():
    long = ready(message="a\x1b[31m\x00b\r\n" + "x" * 2000).message
    assert long.startswith("a[31mb\nxxx")
    assert long.endswith("…")
    assert len(long) == 1024
