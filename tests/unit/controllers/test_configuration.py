"""Tests `Ready` of configuration objects with and without errors."""

import pytest

from tarsy.controllers.configuration import (
    AFTER_ERROR_SECONDS,
    RECHECK_SECONDS,
    SETTLED_RECHECK_SECONDS,
    notify_problems,
    reconcile,
    validate,
)
from tarsy.controllers.machinery.context import SecretReader
from tarsy.kube.client import ApiError
from tarsy.llm.registry import SecretProblem
from tarsy.plan.errors import FieldPath
from tarsy.plan.model import CallLimits, ObjectRef, SecretKey
from tarsy.resources.meta import AnyResource, Condition
from tarsy.resources.parse import parse_object
from tarsy.store.errors import StoreUnavailable
from unit.controllers.builders import NOW, raw, reconcile_context


async def test_limits_of_a_provider_are_published_before_anybody_is_asked_and_again_when_that_failed() -> None:
    found = parse_object(
        raw("LLMProvider", "one", {"type": "openai", "model": "m", "limits": {"maxConcurrent": 3}}, generation=7)
    )
    published: list[tuple[str, int, CallLimits | None]] = []
    away = [True, False]

    async def publish(ref: ObjectRef, limits: CallLimits | None) -> None:
        published.append((ref.uid, ref.generation, limits))
        if away.pop():
            raise StoreUnavailable("Postgres is away")

    class Api:
        async def patch(self, *_: object, **__: object) -> dict[str, object]:
            raise ApiError(404, "NotFound", "it is gone")

    async def again() -> float | None:
        return await reconcile(found, reconcile_context(Api(), publish_limits=publish, read_secret=no_secrets))

    assert (await again(), await again()) == (None, AFTER_ERROR_SECONDS)
    assert published == [(found.metadata.uid, 7, CallLimits(max_concurrent=3))] * 2


async def no_secrets(_: object) -> str:
    raise AssertionError("it names none")


def chain(generation: int = 4):
    spec = {"stages": [{"name": "s", "agents": [{"name": "triage"}]}]}
    return parse_object(raw("Chain", "pods", spec, generation=generation))


def test_object_without_errors_is_ready() -> None:
    (ready,) = validate(chain(), [], NOW).conditions
    assert (ready.status, ready.reason, ready.observed_generation) == ("True", "Usable", 4)


def test_status_of_a_chain_says_its_alert_types_in_words() -> None:
    stages = [{"name": "s", "agents": [{"name": "a"}]}]
    chain = parse_object(raw("Chain", "one", {"alertTypes": ["PodCrash", "PodPending"], "stages": stages}))
    assert validate(chain, [], NOW).to_dict()["alertTypes"] == "PodCrash, PodPending"


def test_all_errors_are_said_at_once_each_with_its_field() -> None:
    at = FieldPath.of(chain())
    errors = [
        ((at / "stages")[0].error("no such agent; create it"), "ReferencesInvalid"),
        ((at / "llmProvider").error("no such provider; create it"), "ReferencesInvalid"),
        ((at / "mcpServers").error("Secret a/b does not exist; create it"), "SecretMissing"),
    ]
    (ready,) = validate(chain(), errors, NOW).conditions
    assert ready.status == "False" and ready.reason == "ReferencesInvalid"
    assert ready.message == (
        "spec.stages[0]: no such agent; create it; spec.llmProvider: no such provider; create it; "
        "spec.mcpServers: Secret a/b does not exist; create it"
    )


def test_reason_does_not_depend_on_the_order_of_the_errors() -> None:
    at = FieldPath.of(chain())
    errors = [(at.error("b"), "SecretMissing"), (at.error("a"), "ReferencesInvalid")]
    assert (
        validate(chain(), errors, NOW).conditions[0].reason == validate(chain(), errors[::-1], NOW).conditions[0].reason
    )


def test_a_thousand_errors_fit_into_a_condition() -> None:
    at = FieldPath.of(chain())
    errors = [((at / "stages")[n].error("x" * 100), "ReferencesInvalid") for n in range(1000)]
    (ready,) = validate(chain(), errors, NOW).conditions
    assert len(ready.message) <= 1024 and ready.message.endswith("…")


TARGETS = [
    {"name": "people", "slack": {"channel": "C1", "tokenSecretRef": {"name": "slack", "key": "token"}}},
    {"name": "programs", "webhook": {"url": "https://h.example", "signingSecretRef": {"name": "hook", "key": "key"}}},
]


def telling(kind: str, notify: list[dict[str, object]], status: object = None) -> AnyResource:
    spec = {"stages": [{"name": "s", "agents": [{"name": "triage"}]}]} if kind == "Chain" else {}
    return parse_object(raw(kind, "one", {**spec, "notify": notify}, status, generation=3))


async def judged(obj: AnyResource, read_secret: SecretReader) -> tuple[dict[str, Condition], list[float]]:
    untold, waits = await notify_problems(obj, read_secret)
    return {found.type: found for found in validate(obj, [], NOW, untold=untold).conditions}, waits


@pytest.mark.parametrize("kind", ["Chain", "AlertRoute"])
async def test_secrets_that_cannot_be_read_for_those_who_are_told_leave_their_object_ready(kind: str) -> None:
    async def read(key: SecretKey) -> str:
        if key.name == "hook":
            raise SecretProblem("SecretNotLabelled", "Secret team-a/hook lacks the label; add it")
        return "xoxb-1"

    found, waits = await judged(telling(kind, TARGETS), read)
    assert (found["Ready"].status, found["Ready"].reason) == ("True", "Usable")
    untold = found["NotificationsReady"]
    assert (untold.status, untold.reason, untold.observed_generation) == ("False", "SecretNotLabelled", 3)
    assert untold.message.endswith(
        "spec.notify[1].webhook.signingSecretRef: Secret team-a/hook lacks the label; add it"
    )
    assert "xoxb-1" not in untold.message
    assert waits == [RECHECK_SECONDS]


@pytest.mark.parametrize("kind", ["Chain", "AlertRoute"])
async def test_targets_whose_secrets_can_be_read_are_said_to_be_in_order_and_looked_at_again(kind: str) -> None:
    async def read(_: SecretKey) -> str:
        return "value"

    found, waits = await judged(telling(kind, TARGETS), read)
    assert (found["NotificationsReady"].status, found["NotificationsReady"].reason) == ("True", "SecretsReadable")
    assert waits == [SETTLED_RECHECK_SECONDS]


@pytest.mark.parametrize("kind", ["Chain", "AlertRoute"])
async def test_an_object_that_tells_nobody_any_more_loses_what_was_said_of_it(kind: str) -> None:
    old = {"type": "NotificationsReady", "status": "False", "reason": "SecretMissing", "lastTransitionTime": NOW}
    found, waits = await judged(telling(kind, [], {"conditions": [old]}), no_secrets)
    assert set(found) == {"Ready"} and waits == []


async def test_a_thousand_words_about_eight_targets_fit_into_a_condition() -> None:
    async def read(_: SecretKey) -> str:
        raise SecretProblem("SecretMissing", "x" * 1000)

    eight = [{**TARGETS[0], "name": f"t-{number}"} for number in range(8)]
    found, _ = await judged(telling("Chain", eight), read)
    assert len(found["NotificationsReady"].message) == 1024 and found["NotificationsReady"].message.endswith("…")
