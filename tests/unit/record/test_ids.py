"""Ids are the version 5 UUIDs of their names, as everybody else computes them."""

import uuid

from hypothesis import given
from hypothesis import strategies as st

from tarsy.record.ids import event_id, idempotency_key, named_uuid, tool_call_id


@given(st.uuids(), st.text(max_size=80))
def test_a_named_uuid_is_the_one_of_the_standard_library(namespace: uuid.UUID, name: str) -> None:
    try:
        expected = uuid.uuid5(namespace, name)
    except UnicodeEncodeError:
        return

    made = named_uuid(namespace, name)

    assert (made, hash(made), str(made)) == (expected, hash(expected), str(expected))
    assert (made.version, made.variant) == (5, uuid.RFC_4122)


def test_ids_of_old_records_stay_what_they_were() -> None:
    execution = uuid.UUID("00000000-0000-4000-8000-000000000001")

    assert tool_call_id(execution, 3, 1, 0) == uuid.uuid5(execution, "tool/3/1/0")
    assert idempotency_key(execution, 3, 1) == str(uuid.uuid5(execution, "tool/3/1"))
    assert event_id(execution, "response") == uuid.uuid5(execution, "event/response")
