"""Normalizes answers: all that matters stays, nothing that differs in each run."""

from tests.drift.normal import shape_lines, text_lines, value_lines, words


def test_uids_times_tokens_and_addresses_are_words() -> None:
    text = (
        "3fa85f64-5717-4562-b3fc-2c963f66afa6 at 2026-11-22T05:31:00.5Z by eyJh.eyJi.c-_ from https://127.0.0.1:4711/x"
    )
    assert words(text) == "UID at TIME by TOKEN from SERVER/x"


def test_columns_keep_their_order_and_lose_their_width_and_age() -> None:
    shown = "NAME   AGE     DATA\na      2m5s    3d\nb-9s   <unknown>  1\n\n"
    assert text_lines(shown) == ["NAME  AGE  DATA", "a  AGE  AGE", "b-9s  <unknown>  1"]


def test_values_are_told_by_their_path() -> None:
    answer = {"metadata": {"resourceVersion": "7", "labels": {"a/b": "c"}}, "items": [{"n": 1}, {}], "none": None}
    assert value_lines(answer) == [
        "items[0].n = 1",
        "items[1] = {}",
        'metadata.labels["a/b"] = "c"',
        "metadata.resourceVersion = RV",
        "none = null",
    ]


def test_a_version_that_is_empty_is_not_the_same_as_one_that_is_not() -> None:
    assert value_lines({"resourceVersion": ""}) == ['resourceVersion = ""']


def test_a_shape_has_types_and_no_values() -> None:
    answer = {"items": [{"n": 1}, {"n": "x", "ok": True}], "empty": [], "none": None}
    assert shape_lines(answer) == ["empty: []", "items[].n: number | string", "items[].ok: boolean", "none: null"]


def test_what_is_to_be_forgotten_goes_with_all_that_is_below_it() -> None:
    answer = {"status": {"a": 1}, "statusText": "x", "items": [{"status": 1, "n": 2}]}
    assert value_lines(answer, ["status", "items[].status"]) == ["items[0].n = 2", 'statusText = "x"']
