"""Tests which objects a change of readiness queues: those that may rely on it, once."""

from typing import Any

import pytest

from tarsy.controllers.machinery.cache import Cache, Key
from tarsy.controllers.machinery.informer import Informer
from tarsy.controllers.machinery.queue import KeyedQueue
from unit.controllers.builders import raw

SPECS: dict[str, dict[str, Any]] = {
    "Chain": {"stages": [{"name": "s", "agents": [{"name": "one"}]}]},
    "Agent": {},
    "LLMProvider": {"type": "openai", "model": "m"},
    "MCPServer": {"transport": {"type": "http", "http": {"url": "http://tools.example/mcp"}}},
}


class Woken(KeyedQueue[Key]):
    def __init__(self) -> None:
        super().__init__()
        self.keys: list[str] = []

    def add(self, key: Key) -> None:
        self.keys.append(f"{key.namespace}/{key.kind}")

    def add_when_idle(self, key: Key) -> None:
        self.add(key)


def told(
    kind: str, namespace: str = "team-a", version: int = 10, hash: str | None = None, **said: str
) -> dict[str, Any]:
    conditions = [
        {"type": type_, "status": status, "reason": "Why", "message": f"at {version}", "observedGeneration": 1}
        for type_, status in said.items()
    ]
    status: dict[str, Any] = {"conditions": conditions} | ({"toolsHash": hash} if hash else {})
    uid = f"6a1c7f6e-0000-4000-8000-{abs(hash_of(kind, namespace)):012d}"
    return raw(kind, "one", SPECS[kind], status, namespace=namespace, uid=uid, resourceVersion=str(version))


def hash_of(kind: str, namespace: str) -> int:
    return sum(map(ord, kind + namespace))


def cluster(*namespaces: str) -> tuple[Informer, Woken]:
    queue = Woken()
    informer = Informer(Cache(), queue, "library")
    for namespace in namespaces:
        for kind in SPECS:
            informer.seen(told(kind, namespace, Ready="True"))
    queue.keys.clear()
    return informer, queue


@pytest.mark.parametrize("kind", ["Agent", "LLMProvider", "MCPServer"])
def test_a_change_of_ready_wakes_the_configuration_of_its_namespace_that_depends_on_others(kind: str) -> None:
    informer, queue = cluster("team-a", "team-b")
    informer.seen(told(kind, version=11, Ready="False"))
    others = {"team-a/Chain", "team-a/Agent"}
    assert set(queue.keys) == others | {f"team-a/{kind}"}


def test_a_change_in_the_library_wakes_those_who_are_served_by_it_everywhere() -> None:
    informer, queue = cluster("team-a", "library")
    informer.seen(told("LLMProvider", "library", version=11, Ready="False"))
    assert {"team-a/Chain", "library/Chain"} <= set(queue.keys)


def test_a_new_message_or_a_status_without_news_wakes_nobody_else() -> None:
    informer, queue = cluster("team-a")
    informer.seen(told("LLMProvider", version=11, Ready="True"))
    assert queue.keys == ["team-a/LLMProvider"]


def test_what_the_controller_wrote_itself_is_news_when_the_watch_tells_of_it() -> None:
    queue, cache = Woken(), Cache()
    informer = Informer(cache, queue, "library")
    for kind in SPECS:
        informer.seen(told(kind))
    own = told("LLMProvider", version=11, Ready="True")
    cache.put(own)
    queue.keys.clear()
    informer.seen(own)
    assert "team-a/Chain" in queue.keys
    queue.keys.clear()
    informer.seen(own)
    assert queue.keys == ["team-a/LLMProvider"]


def test_other_tools_wake_whoever_selects_of_them() -> None:
    informer, queue = cluster("team-a")
    informer.seen(told("MCPServer", version=11, Ready="True", hash="ab" * 32))
    assert "team-a/Chain" in queue.keys
    queue.keys.clear()
    informer.seen(told("MCPServer", version=12, Ready="True", hash="cd" * 32))
    assert "team-a/Chain" in queue.keys


def test_a_chain_wakes_nobody() -> None:
    informer, queue = cluster("team-a")
    informer.seen(told("Chain", version=11, Ready="False"))
    assert queue.keys == ["team-a/Chain"]
