"""`Ready`: what it says of an object's errors."""

from tarsy.controllers.cache import Cache
from tarsy.controllers.configuration import AFTER_ERROR_SECONDS, judge, reconcile
from tarsy.kube.client import ApiError
from tarsy.plan.errors import At
from tarsy.plan.model import CallLimits, ObjectRef
from tarsy.resources.parse import parse
from tarsy.store.errors import StoreUnavailable
from unit.controllers.builders import NOW, raw


async def test_limits_of_a_provider_are_published_before_anybody_is_asked_and_again_when_that_failed() -> None:
    found = parse(
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
        return await reconcile(found, Cache(), Api(), no_secrets, None, publish)  # type: ignore[arg-type]

    assert (await again(), await again()) == (None, AFTER_ERROR_SECONDS)
    assert published == [(found.metadata.uid, 7, CallLimits(max_concurrent=3))] * 2


async def no_secrets(_: object) -> str:
    raise AssertionError("it names none")


def chain(generation: int = 4):
    spec = {"stages": [{"name": "s", "agents": [{"name": "triage"}]}]}
    return parse(raw("Chain", "pods", spec, generation=generation))


def test_object_without_errors_is_ready() -> None:
    (ready,) = judge(chain(), [], NOW).conditions
    assert (ready.status, ready.reason, ready.observed_generation) == ("True", "Usable", 4)


def test_all_errors_are_said_at_once_each_with_its_field() -> None:
    at = At.of(chain())
    errors = [
        ((at / "stages")[0].error("no such agent; create it"), "ReferencesInvalid"),
        ((at / "llmProvider").error("no such provider; create it"), "ReferencesInvalid"),
        ((at / "mcpServers").error("Secret a/b does not exist; create it"), "SecretMissing"),
    ]
    (ready,) = judge(chain(), errors, NOW).conditions
    assert ready.status == "False" and ready.reason == "ReferencesInvalid"
    assert ready.message == (
        "spec.stages[0]: no such agent; create it; spec.llmProvider: no such provider; create it; "
        "spec.mcpServers: Secret a/b does not exist; create it"
    )


def test_reason_does_not_depend_on_the_order_of_the_errors() -> None:
    at = At.of(chain())
    errors = [(at.error("b"), "SecretMissing"), (at.error("a"), "ReferencesInvalid")]
    assert judge(chain(), errors, NOW).conditions[0].reason == judge(chain(), errors[::-1], NOW).conditions[0].reason


def test_a_thousand_errors_fit_into_a_condition() -> None:
    at = At.of(chain())
    errors = [((at / "stages")[n].error("x" * 100), "ReferencesInvalid") for n in range(1000)]
    (ready,) = judge(chain(), errors, NOW).conditions
    assert len(ready.message) <= 1024 and ready.message.endswith("…")
