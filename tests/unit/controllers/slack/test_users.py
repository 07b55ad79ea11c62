"""Tests the administrator's list of Slack users."""

from pathlib import Path

import pytest

from tarsy.controllers.slack.users import UserListError, read_users

TEAM = "T0000000001"
GOOD = f"""
team: {TEAM}
users:
  - {{slack: U0000000ANN, username: ann@example.org, groups: [on-call]}}
  - {{slack: W0000000BOB, username: bob@example.org}}
"""


def listed(folder: Path, text: str) -> Path:
    path = folder / "users.yaml"
    path.write_text(text)
    return path


def test_a_listed_user_has_the_identity_of_the_list(tmp_path: Path) -> None:
    users = read_users(listed(tmp_path, GOOD))
    ann, bob = users.author("U0000000ANN", frozenset({TEAM})), users.author("W0000000BOB", frozenset({TEAM}))
    assert ann is not None and (ann.username, ann.groups) == ("ann@example.org", ("on-call", "system:authenticated"))
    assert bob is not None and bob.groups == ("system:authenticated",)


@pytest.mark.parametrize(
    ("person", "teams"),
    [
        ("U0000000EVE", {TEAM}),
        ("ann@example.org", {TEAM}),
        ("U0000000ANN", {"T0000000999"}),
        ("U0000000ANN", {TEAM, "T0000000999"}),
        ("U0000000ANN", set()),
    ],
)
def test_others_have_none(tmp_path: Path, person: str, teams: set[str]) -> None:
    assert read_users(listed(tmp_path, GOOD)).author(person, frozenset(teams)) is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("users: []", "team: Field required"),
        ("team: acme", "team: "),
        (f"team: {TEAM}\nusers: [{{slack: ann, username: a}}]", "users[0].slack: "),
        (f"team: {TEAM}\nusers: [{{slack: U1A, username: ''}}]", "users[0].username: "),
        (f"team: {TEAM}\nusers: [{{slack: U1A, username: a, email: a@b}}]", "users[0].email: "),
        (f"team: {TEAM}\nusers: [{{slack: U1A, username: 'system:admin'}}]", "is a system user"),
        (
            f"team: {TEAM}\nusers: [{{slack: U1A, username: a, groups: ['system:masters']}}]",
            "system:masters is a system group",
        ),
        (f"team: {TEAM}\nusers: [{{slack: U1A, username: a}}, {{slack: U1A, username: b}}]", "U1A is named twice"),
        ("[", "is not YAML"),
        ("- a", "the list: "),
    ],
)
def test_a_list_with_an_error_is_refused_as_a_whole(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(UserListError) as refused:
        read_users(listed(tmp_path, text))
    assert words in str(refused.value)


def test_a_missing_list_names_its_remedy(tmp_path: Path) -> None:
    with pytest.raises(UserListError, match="mount the ConfigMap tarsy-slack-users"):
        read_users(tmp_path / "none.yaml")
