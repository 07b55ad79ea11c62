"""Reads the administrator's list of Slack users and the cluster identities that they have.

Decision: only this list says who somebody is. An e-mail address or a name in Slack is what its owner, or an
administrator of the workspace, writes there. The list is a file, from a ConfigMap in the operator's namespace, and is
read anew for each question, so that an entry which is removed counts at once.
"""

from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, field_validator, model_validator
from pydantic.alias_generators import to_camel

from tarsy.resources.v1alpha1.common import MAX_GROUP, MAX_GROUPS, Author

EVERYONE = "system:authenticated"
"""The group that the API server gives to all whom it has authenticated."""

_MOST_BYTES = 1024 * 1024


class UserListError(Exception):
    """The list cannot be used; the message names the file, the entry and the remedy."""


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, alias_generator=to_camel)


class _User(_Entry):
    slack: Annotated[str, StringConstraints(pattern=r"^[UW][A-Z0-9]{1,31}$")]
    username: Annotated[str, StringConstraints(min_length=1, max_length=1024)]
    groups: Annotated[
        tuple[Annotated[str, StringConstraints(min_length=1, max_length=MAX_GROUP)], ...],
        Field(max_length=MAX_GROUPS - 1, strict=False),
    ] = ()

    @field_validator("username")
    @classmethod
    def _is_a_person(cls, value: str) -> str:
        if value.startswith("system:"):
            raise ValueError("is a system user; a person needs another name")
        return value

    @field_validator("groups")
    @classmethod
    def _are_of_people(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if found := next((group for group in value if group.startswith("system:")), None):
            raise ValueError(f"{found} is a system group; leave it out ({EVERYONE} is added)")
        return value


class _List(_Entry):
    team: Annotated[str, StringConstraints(pattern=r"^[TE][A-Z0-9]{1,31}$")]
    users: Annotated[tuple[_User, ...], Field(max_length=10_000, strict=False)] = ()

    @model_validator(mode="after")
    def _names_each_once(self) -> "_List":
        seen: set[str] = set()
        for user in self.users:
            if user.slack in seen:
                raise ValueError(f"{user.slack} is named twice; keep one entry")
            seen.add(user.slack)
        return self


class SlackUsers:
    """The users of one workspace.

    Args:
        team: id of the workspace.
        authors: cluster identity by the id of the Slack user.
    """

    def __init__(self, team: str, authors: dict[str, Author]) -> None:
        self._team = team
        self._authors = authors

    def author(self, person: str, teams: frozenset[str]) -> Author | None:
        """Returns the cluster identity of a Slack user; None: the list does not name them.

        Args:
            person: id of the Slack user.
            teams: workspaces that the event names; people of another one, in a shared channel, are not on the list.
        """
        return self._authors.get(person) if teams == {self._team} else None


def read_users(path: Path) -> SlackUsers:
    """Reads the list.

    Raises:
        UserListError: it cannot be read, or has errors.
    """
    try:
        with path.open("rb") as file:
            text = file.read(_MOST_BYTES + 1)
        if len(text) > _MOST_BYTES:
            raise UserListError(f"{path}: is longer than {_MOST_BYTES} bytes; shorten it")
        found = _List.model_validate(yaml.safe_load(text))
    except OSError as error:
        raise UserListError(
            f"{path}: cannot be read ({error.strerror}); mount the ConfigMap tarsy-slack-users"
        ) from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError):
        raise UserListError(f"{path}: is not YAML; write team: and users:") from None
    except ValidationError as error:
        problems = "; ".join(f"{_where(one['loc'])}: {one['msg']}" for one in error.errors(include_input=False)[:10])
        raise UserListError(f"{path}: {problems}") from None
    return SlackUsers(
        found.team,
        {user.slack: Author(username=user.username, groups=(*user.groups, EVERYONE)) for user in found.users},
    )


def _where(location: tuple[Any, ...]) -> str:
    shown = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
    return shown.lstrip(".") or "the list"
