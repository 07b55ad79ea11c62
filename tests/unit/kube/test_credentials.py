"""Tests Secrets: which are read, how long they are cached, and the sentences for those that cannot be read."""

import asyncio
import base64
from typing import Any

import pytest

from tarsy.kube import credentials
from tarsy.kube.client import ApiError
from tarsy.kube.credentials import CACHE_SECONDS, OUTAGE_SECONDS, Secrets, binding
from tarsy.llm.registry import SecretProblem
from tarsy.plan.model import SecretKey

KEY = SecretKey(namespace="team-a", name="model", key="api-key")
VALUE = "s3cr3t-value"
AWAY = ApiError(0, "Unreachable", "away")


class Api:
    """One Secret, or an error; counts how often it is asked."""

    def __init__(self, secret: Any) -> None:
        self.secret = secret
        self.asked = 0

    async def find(self, kind: str, namespace: str, name: str) -> Any:
        self.asked += 1
        if isinstance(self.secret, ApiError):
            raise self.secret
        return self.secret


def secret(value: bytes | str = VALUE, key: str = "api-key", labels: Any = True) -> dict[str, Any]:
    content = value if isinstance(value, str) and value.startswith("!") else _encode(value)
    meta = {"labels": {"tarsy.dev/credentials": "true"} if labels is True else labels}
    return {"metadata": meta, "data": {key: content}}


def _encode(value: bytes | str) -> str:
    return base64.b64encode(value if isinstance(value, bytes) else value.encode()).decode()


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


async def test_value_is_decoded_and_its_trailing_newline_is_not_part_of_it() -> None:
    assert await Secrets(Api(secret(VALUE + "\n")))(KEY) == VALUE


async def test_value_is_believed_for_seconds_and_a_rotated_one_counts_after() -> None:
    clock, api = Clock(), Api(secret("old"))
    secrets = Secrets(api, clock=clock)
    assert await secrets(KEY) == "old"
    api.secret = secret("new")
    clock.now += CACHE_SECONDS - 0.01
    assert await secrets(KEY) == "old" and api.asked == 1
    clock.now += 0.02
    assert await secrets(KEY) == "new" and api.asked == 2


async def test_secrets_of_two_namespaces_are_not_mixed_up() -> None:
    api = Api(secret("one"))
    secrets = Secrets(api)
    assert await secrets(KEY) == "one"
    api.secret = secret("two")
    assert await secrets(KEY.model_copy(update={"namespace": "team-b"})) == "two"


async def test_problem_is_not_remembered() -> None:
    api = Api(None)
    secrets = Secrets(api)
    with pytest.raises(SecretProblem):
        await secrets(KEY)
    api.secret = secret()
    assert await secrets(KEY) == VALUE


@pytest.mark.parametrize(
    ("there", "reason", "words"),
    [
        (None, "SecretMissing", "does not exist; create it"),
        (secret(labels=None), "SecretNotLabelled", 'lacks the label tarsy.dev/credentials: "true"; add it'),
        (secret(labels={"tarsy.dev/credentials": "yes"}), "SecretNotLabelled", "lacks the label"),
        (secret(key="other"), "SecretKeyMissing", "has no key api-key; add it"),
        ({**secret(), "data": None}, "SecretKeyMissing", "has no key api-key; add it"),
        (secret(" \n"), "SecretKeyMissing", "key api-key is empty; fill it in"),
        (secret(b"\xff\xfe" + VALUE.encode()), "SecretKeyInvalid", "key api-key is not text"),
        (secret("!" + VALUE), "SecretKeyInvalid", "key api-key is not text"),
        (
            ApiError(403, "Forbidden", "no"),
            "SecretForbidden",
            "rolebinding tarsy-secret-reader -n team-a --clusterrole=",
        ),
    ],
)
async def test_each_problem_names_secret_and_remedy_and_never_a_value(there: Any, reason: str, words: str) -> None:
    with pytest.raises(SecretProblem) as caught:
        await Secrets(Api(there))(KEY)
    assert caught.value.reason == reason
    assert caught.value.message.startswith("Secret team-a/model") and words in caught.value.message
    assert VALUE not in repr(caught.value) and _encode(VALUE)[:-2] not in repr(caught.value)


async def test_api_that_is_away_is_not_the_secrets_problem() -> None:
    with pytest.raises(ApiError):
        await Secrets(Api(AWAY), wait_seconds=0)(KEY)


async def test_secret_that_was_read_is_used_while_the_api_is_away_and_not_for_ever() -> None:
    clock, api = Clock(), Api(secret("old"))
    secrets = Secrets(api, clock=clock, wait_seconds=0)
    assert await secrets(KEY) == "old"
    api.secret = AWAY
    for _ in range(3):
        clock.now += CACHE_SECONDS + 1
        assert await secrets(KEY) == "old"
    assert api.asked == 4, "the API is asked again, but not at every call"
    assert await secrets(KEY) == "old" and api.asked == 4
    api.secret = secret("new")
    clock.now += CACHE_SECONDS + 1
    assert await secrets(KEY) == "new"
    api.secret = AWAY
    clock.now += OUTAGE_SECONDS + 1
    with pytest.raises(ApiError):
        await secrets(KEY)


@pytest.mark.parametrize("answer", [None, ApiError(403, "Forbidden", "no")])
async def test_secret_that_was_taken_away_is_not_used_on_when_the_api_goes_away_later(answer: Any) -> None:
    clock, api = Clock(), Api(secret())
    secrets = Secrets(api, clock=clock, wait_seconds=0)
    await secrets(KEY)
    api.secret = answer
    clock.now += CACHE_SECONDS + 1
    with pytest.raises(SecretProblem):
        await secrets(KEY)
    api.secret = AWAY
    with pytest.raises(ApiError):
        await secrets(KEY)


async def test_secret_that_was_never_read_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(credentials, "RETRY_SECONDS", 0.01)
    answers = iter([AWAY, AWAY, secret()])

    class Returning(Api):
        async def find(self, kind: str, namespace: str, name: str) -> Any:
            self.secret = next(answers)
            return await super().find(kind, namespace, name)

    assert await Secrets(Returning(None))(KEY) == VALUE


async def test_api_that_does_not_answer_holds_a_known_secret_up_for_moments_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(credentials, "PATIENCE_SECONDS", 0.01)
    clock, api = Clock(), Api(secret())
    secrets = Secrets(api, clock=clock)
    await secrets(KEY)

    async def silence(*_: str) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(api, "find", silence)
    clock.now += CACHE_SECONDS + 1
    assert await secrets(KEY) == VALUE


@pytest.mark.parametrize(
    ("refusal", "account"),
    [
        ("no", "--serviceaccount=tarsy-system:tarsy-operator"),
        (
            'secrets "key" is forbidden: User "system:serviceaccount:ops:tarsy-operator" cannot get resource "secrets"',
            "--serviceaccount=ops:tarsy-operator",
        ),
        ('User "system:serviceaccount:ops:my.worker" cannot get', "--serviceaccount=ops:my.worker"),
    ],
)
def test_the_command_for_a_secret_that_may_not_be_read_names_who_was_refused(refusal: str, account: str) -> None:
    command = binding("team-a", refusal)
    assert command.startswith("`kubectl create rolebinding tarsy-secret-reader -n team-a --clusterrole=")
    assert account in command
