"""Tests what people sign for a call of a tool, and which decisions are an approval."""

import json
import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from for_each import for_each
from tarsy.record.approvals.approval import (
    ApprovalState,
    AskedApproval,
    GatedCall,
    SignedDecision,
    judge_decisions,
    plain_json,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CALL = GatedCall(
    server_uid="7c1f",
    server_generation=3,
    tool="scale",
    definition="d" * 32,
    arguments={"name": "checkout", "namespace": "pay", "replicas": 3, "force": False, "tags": ["a", "b"], "x": {}},
)
ASKED = AskedApproval(CALL.digest, 1, frozenset({"rita"}), NOW + timedelta(hours=2))


def mutated(value: Any, chance: random.Random) -> Any:
    """Another JSON value than `value`, that differs in one place."""
    match value:
        case dict() if value and chance.random() < 0.7:
            key = chance.choice(sorted(value))
            match chance.randrange(3):
                case 0:
                    return {name: item for name, item in value.items() if name != key}
                case 1:
                    return {(name + " " if name == key else name): item for name, item in value.items()}
            return {**value, key: mutated(value[key], chance)}
        case dict():
            return {**value, f"added-{chance.random()}": chance.choice([None, 0, "", [], {}])}
        case list() if value and chance.random() < 0.7:
            place = chance.randrange(len(value))
            return chance.choice([value[:place] + value[place + 1 :], [*value, value[place]], value[::-1], str(value)])
        case bool():
            return chance.choice([not value, int(value), str(value), None])
        case int():
            return chance.choice([value + 1, -value, str(value), value * 10, [value]])
        case str():
            return chance.choice([value + "\u200b", value.upper(), value + ".", " " + value, [value], None])
        case _:
            return chance.choice([[], {}, 0, "null", False])


def other_call(chance: random.Random) -> GatedCall:
    """A call that differs from the approved one in arguments, definition, tool or server."""
    match chance.randrange(5):
        case 0:
            return replace(CALL, definition=f"{chance.getrandbits(128):032x}")
        case 1:
            return replace(CALL, server_uid=str(chance.random()))
        case 2:
            return replace(CALL, server_generation=chance.choice([0, 1, 2, 4, 30, 33]))
        case 3:
            return replace(CALL, tool=chance.choice(["Scale", "scale ", "delete", "scale.x"]))
        case _:
            return replace(CALL, arguments=mutated(dict(CALL.arguments), chance))


def test_none_of_ten_thousand_mutations_is_what_people_approved() -> None:
    chance, signed = random.Random(23), SignedDecision("anna", True, CALL.digest)
    assert judge_decisions(ASKED, [signed], frozenset({"anna"}), NOW) is ApprovalState.APPROVED
    for _ in range(8_000):
        call = other_call(chance)
        if replace(call, arguments=CALL.arguments) == CALL and plain_json(call.arguments) == plain_json(CALL.arguments):
            continue  # such as a list of one in reverse
        assert call.digest != CALL.digest, call
        assert (
            judge_decisions(replace(ASKED, digest=call.digest), [signed], frozenset({"anna"}), NOW)
            is ApprovalState.PENDING
        )
    for _ in range(2_000):
        place = chance.randrange(len(CALL.digest))
        letter = chance.choice("0123456789abcdefABCDEF: ")
        digest = CALL.digest[:place] + letter + CALL.digest[place + 1 :]
        if digest != CALL.digest:
            forged = replace(signed, digest=digest)
            assert judge_decisions(ASKED, [forged], frozenset({"anna"}), NOW) is ApprovalState.PENDING


LEAVES = st.none() | st.booleans() | st.integers() | st.text()


@given(
    st.recursive(
        LEAVES, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5), max_leaves=20
    )
)
def test_order_of_keys_and_way_of_writing_do_not_matter(value: Any) -> None:
    assert plain_json(json.loads(json.dumps(value))) == plain_json(value)
    if isinstance(value, dict):
        assert plain_json(dict(reversed(value.items()))) == plain_json(value)


@pytest.mark.parametrize("value", [float("nan"), {"a": float("inf")}, {1: "a"}, [{"a": {None: 1}}]])
def test_what_json_cannot_tell_has_no_digest(value: Any) -> None:
    with pytest.raises(ValueError):
        plain_json(value)


def yes(username: str, digest: str = CALL.digest) -> SignedDecision:
    return SignedDecision(username, True, digest)


def no(username: str) -> SignedDecision:
    return SignedDecision(username, False, CALL.digest)


@for_each(
    ("required", "decisions", "after", "state"),
    [
        (1, [], 0.0, ApprovalState.PENDING),
        (1, [yes("anna")], 0.0, ApprovalState.APPROVED),
        (1, [yes("anna")], 7199.0, ApprovalState.APPROVED),
        (1, [yes("anna")], 7200.0, ApprovalState.EXPIRED),
        (1, [], 7200.0, ApprovalState.EXPIRED),
        (1, [yes("rita")], 0.0, ApprovalState.PENDING),
        (1, [yes("vera")], 0.0, ApprovalState.PENDING),
        (1, [yes("anna", "sha256:")], 0.0, ApprovalState.PENDING),
        (1, [yes("anna"), no("ben")], 0.0, ApprovalState.REJECTED),
        (1, [no("vera")], 0.0, ApprovalState.PENDING),
        (1, [no("rita")], 0.0, ApprovalState.REJECTED),
        (2, [yes("anna")], 0.0, ApprovalState.PENDING),
        (2, [yes("anna"), yes("anna")], 0.0, ApprovalState.PENDING),
        (2, [yes("anna"), yes("rita")], 0.0, ApprovalState.PENDING),
        (2, [yes("anna"), yes("ben")], 0.0, ApprovalState.APPROVED),
        (0, [yes("anna")], 0.0, ApprovalState.PENDING),
        (3, [yes("anna"), yes("ben")], 0.0, ApprovalState.PENDING),
    ],
)
def test_decisions_of_people_who_may_and_did_not_ask_are_an_approval(
    required: int, decisions: list[SignedDecision], after: float, state: ApprovalState
) -> None:
    entitled = frozenset({"anna", "ben", "rita"})
    asked = replace(ASKED, required=required)
    assert judge_decisions(asked, decisions, entitled, NOW + timedelta(seconds=after)) is state


def test_nobody_approves_where_nobody_is_known_to_have_asked() -> None:
    unknown = replace(ASKED, requesters=frozenset())
    assert judge_decisions(unknown, [yes("anna")], frozenset({"anna"}), NOW) is ApprovalState.PENDING
