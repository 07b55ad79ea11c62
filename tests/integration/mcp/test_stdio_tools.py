"""Tests tool servers as child processes: calls, failures, recovery, and cleanup."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import pytest

from e2e.waiting import until
from integration.mcp.servers import SDK_SERVER, SECRET, plan, resolve, stdio
from tarsy.mcp.toolbox import McpToolbox, McpToolboxes
from tarsy.plan.model import SecretKey, StdioTransport, Value
from tarsy.record.messages import ToolOutcome

TOKEN = Value(name="TOKEN", secret=SecretKey(namespace="n", name="s", key="k"))


@pytest.fixture
def toolboxes() -> McpToolboxes:
    """One, since only calls over streamable HTTP are made in two ways."""
    return McpToolboxes(resolve, mask=str, allow_stdio=True)


async def call(box: McpToolbox, name: str, arguments: str = "{}", timeout: float = 60) -> ToolOutcome:
    return await box.call(name, arguments, timeout=timeout, idempotency_key="key-1")


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


async def gone(pid: int) -> bool:
    async def look() -> bool:
        return not alive(pid)

    return bool(await until(f"process {pid} is gone", look))


async def test_tools_of_all_pages_are_offered_in_order_with_their_schemas(toolboxes: McpToolboxes) -> None:
    async with toolboxes.open([stdio()]) as box:
        names = [tool.name for tool in box.tools]
        assert names == sorted(names) and len(names) == 14
        assert box.tools[names.index("small.echo")].parameters_schema["required"] == ["text"]
        assert box.unavailable == {}
        assert box.instructions == {"small": "Be brief."}


async def test_selection_allow_and_deny_decide_what_is_offered_and_what_may_be_called(toolboxes: McpToolboxes) -> None:
    server = stdio(selected=("echo", "pid", "die", "missing"), allow=("echo", "pid", "wait"), deny=("pid",))
    async with toolboxes.open([server]) as box:
        assert [tool.name for tool in box.tools] == ["small.echo"]
        refused = await call(box, "small.pid")
        unknown = await call(box, "small.nothing")
        elsewhere = await call(box, "other.echo")
    assert refused.is_error and "not allowed" in refused.content and "small.echo" in refused.content
    assert unknown.is_error and "has no tool 'nothing'" in unknown.content
    assert elsewhere.is_error and "There is no tool 'other.echo'" in elsewhere.content


@pytest.mark.parametrize("name", ["small.echo", "small__echo"])
async def test_a_tool_answers_under_both_forms_of_its_name(toolboxes: McpToolboxes, name: str) -> None:
    async with toolboxes.open([stdio()]) as box:
        assert box.split(name) == ("small", "echo")
        assert await call(box, name, '{"text": "hello"}') == ToolOutcome("hello")
        assert await call(box, name, "text: hello") == ToolOutcome("hello")


async def test_arguments_that_do_not_fit_are_answered_with_what_to_change(toolboxes: McpToolboxes) -> None:
    async with toolboxes.open([stdio()]) as box:
        missing = await call(box, "small.echo", '{"txt": "a"}')
        wrong = await call(box, "small.wait", '{"n": "soon"}')
        surrogate = await call(box, "small.echo", '{"text": "\\ud800"}')
        after = await call(box, "small.echo", '{"text": "still here"}')
    assert missing.is_error and "'text' is a required property" in missing.content
    assert wrong.is_error and "n: 'soon' is not of type 'number'" in wrong.content
    assert surrogate.is_error and "JSON cannot represent" in surrogate.content
    assert after == ToolOutcome("still here")


async def test_results_without_text_are_told_in_words(toolboxes: McpToolboxes) -> None:
    async with toolboxes.open([stdio()]) as box:
        picture = await call(box, "small.picture")
        structured = await call(box, "small.structured")
    assert picture.content == "[image, image/png, about 3 bytes: not shown]\n[resource file:///log]\nline one"
    assert json.loads(structured.content) == {"pods": 3}


async def test_protocol_errors_are_answers(toolboxes: McpToolboxes) -> None:
    async with toolboxes.open([stdio("noisy")]) as box:
        error = await call(box, "small.rpc_error")
        nonsense = await call(box, "small.not_a_result")
        after = await call(box, "small.echo", '{"text": "fine"}')
    assert error.is_error and "no luck" in error.content
    assert nonsense.is_error and "not a tool result" in nonsense.content
    assert after == ToolOutcome("fine")


@pytest.mark.parametrize(
    ("given", "own", "answered"), [(60, 60, True), (0.2, 60, False), (60, 0.2, False), (0, 60, False)]
)
async def test_the_shorter_of_both_limits_ends_a_call(
    toolboxes: McpToolboxes, given: float, own: float, answered: bool
) -> None:
    async with toolboxes.open([stdio(call_seconds=own)]) as box:
        outcome = await call(box, "small.wait", '{"n": 0.1}' if answered else '{"n": 600}', timeout=given)
        after = await call(box, "small.echo", '{"text": "on"}') if own > 1 else ToolOutcome("on")
    assert outcome.is_error is not answered
    assert after == ToolOutcome("on")
    if not answered:
        assert f"no answer within {min(given, own):g} s" in outcome.content
        assert "may have taken effect" in outcome.content


async def test_a_call_whose_server_died_is_not_repeated_unless_its_tool_is_repeatable(
    toolboxes: McpToolboxes, tmp_path: Path
) -> None:
    counts = tmp_path / "counts"
    env = (Value(name="COUNT_FILE", value=str(counts)), TOKEN)
    async with toolboxes.open([stdio(env=env)]) as box:
        once = await call(box, "small.count_then_die")
        called_once = counts.read_text().count("called")
        after = await call(box, "small.echo", '{"text": "back"}')
    async with toolboxes.open([stdio(env=env, repeatable=("count_then_die",))]) as box:
        assert box.repeatable("small.count_then_die") and not box.repeatable("small.echo")
        twice = await call(box, "small__count_then_die")
    assert once.is_error and "outcome is unknown" in once.content and "fatal: the token is [redacted]" in once.content
    assert after == ToolOutcome("back")
    assert called_once == 1
    assert twice.is_error and counts.read_text().count("called") == 3


async def test_a_server_that_was_killed_is_opened_again_by_the_next_call(
    toolboxes: McpToolboxes, tmp_path: Path
) -> None:
    waits = tmp_path / "waits"
    async with toolboxes.open([stdio(env=(Value(name="WAIT_FILE", value=str(waits)),))]) as box:
        first = int((await call(box, "small.pid")).content)
        waiting = asyncio.create_task(call(box, "small.wait", '{"n": 600}'))

        async def is_waiting() -> bool:
            return waits.exists()

        await until("the server is at work", is_waiting)
        os.kill(first, signal.SIGKILL)
        lost = await waiting
        second = int((await call(box, "small.pid")).content)
        os.kill(second, signal.SIGKILL)
        assert await gone(second)

        async def all_at_once() -> list[ToolOutcome] | None:
            """Eight calls; none of them came before the death was noticed here."""
            outcomes = await asyncio.gather(*(call(box, "small.pid") for _ in range(8)))
            return None if any(outcome.is_error for outcome in outcomes) else outcomes

        several = await until("eight are answered", all_at_once)
    assert lost.is_error and "outcome is unknown" in lost.content
    assert first != second
    assert len({outcome.content for outcome in several}) == 1


async def test_servers_that_cannot_be_opened_are_told_and_the_others_work(toolboxes: McpToolboxes) -> None:
    lost = stdio(name="lost").model_copy(update={"transport": StdioTransport(command="no-such-command-here")})
    servers = [
        stdio(),
        stdio("mute", name="mute", init_seconds=4),
        stdio("exit", name="exit", env=(TOKEN,)),
        lost,
    ]
    async with toolboxes.open(servers) as box:
        assert set(box.unavailable) == {"mute", "exit", "lost"}
        assert "within 4 s" in box.unavailable["mute"] and "loading, slowly" in box.unavailable["mute"]
        assert "fatal: no configuration, token [redacted]" in box.unavailable["exit"]
        assert "'no-such-command-here' was not found on PATH" in box.unavailable["lost"]
        assert await call(box, "small.echo", '{"text": "here"}') == ToolOutcome("here")
        away = await call(box, "mute.echo")
    assert away.is_error and "'mute' is not available" in away.content


async def test_commands_do_not_run_where_they_are_not_allowed() -> None:
    async def resolve(value: Value) -> str:
        raise AssertionError(value)

    async with McpToolboxes(resolve, mask=str).open([stdio(env=(TOKEN,))]) as box:
        assert "stdio commands do not run in operator or worker pods" in box.unavailable["small"]
        assert box.tools == ()


async def test_a_value_that_cannot_be_resolved_makes_its_server_unavailable() -> None:
    async def resolve(value: Value) -> str:
        raise LookupError(f"Secret n/s has no key k for {value.name}")

    async with McpToolboxes(resolve, mask=str, allow_stdio=True).open([stdio(env=(TOKEN,))]) as box:
        assert "'TOKEN' could not be resolved: Secret n/s has no key k" in box.unavailable["small"]


async def test_a_child_gets_the_declared_environment_a_path_and_an_empty_home(
    toolboxes: McpToolboxes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-operator")
    monkeypatch.setenv("LOGNAME", "somebody")
    env = (TOKEN, Value(name="LEVEL", value="verbose"), Value(name="API_KEY", value="literal-key"))
    async with toolboxes.open([stdio(env=env)]) as box:
        seen = json.loads((await call(box, "small.environment")).content)
        home = Path(seen.pop("HOME"))
        assert is_empty_and_private(home)
    assert seen == {"PATH": os.environ["PATH"], "TOKEN": "[redacted]", "LEVEL": "verbose", "API_KEY": "[redacted]"}
    assert not exists(home)


async def test_a_declared_secret_does_not_come_back_in_a_result(toolboxes: McpToolboxes) -> None:
    async with toolboxes.open([stdio(env=(TOKEN,))]) as box:
        outcome = await call(box, "small.secret")
    assert outcome.content == "my token is [redacted]" and SECRET not in outcome.content


async def test_a_toolbox_that_was_closed_opens_nothing(toolboxes: McpToolboxes) -> None:
    async with toolboxes.open([stdio()]) as box:
        pass
    before = children()
    outcome = await call(box, "small.pid")
    assert outcome.is_error and "has ended" in outcome.content and children() <= before


@pytest.mark.heavy("a server of others; ours is beside it")
async def test_the_official_server_answers_over_stdio(toolboxes: McpToolboxes) -> None:
    server = plan("sdk", StdioTransport(command=sys.executable, args=(str(SDK_SERVER),)))
    async with toolboxes.open([server]) as box:
        assert box.unavailable == {}
        assert await call(box, "sdk.echo", '{"text": "a", "times": 2}') == ToolOutcome("aa")
        refused = await call(box, "sdk.refuse", '{"text": "no such pod"}')
    assert refused.is_error and "no such pod" in refused.content


async def test_a_large_result_arrives_whole_and_soon(toolboxes: McpToolboxes) -> None:
    async with toolboxes.open([stdio()]) as box:
        outcome = await call(box, "small.big", json.dumps({"n": 20 * 1024 * 1024}))
    assert len(outcome.content) == 20 * 1024 * 1024


async def test_a_result_beyond_all_measure_ends_its_session_only(toolboxes: McpToolboxes) -> None:
    async with toolboxes.open([stdio()]) as box:
        outcome = await call(box, "small.big", json.dumps({"n": 70 * 1024 * 1024}), timeout=120)
        after = await call(box, "small.echo", '{"text": "on"}')
    assert outcome.is_error and "outcome is unknown" in outcome.content
    assert after == ToolOutcome("on")


async def test_calls_of_one_toolbox_run_side_by_side(toolboxes: McpToolboxes) -> None:
    async with toolboxes.open([stdio()]) as box:
        long = [asyncio.create_task(call(box, "small.wait", '{"n": 600}', timeout=600)) for _ in range(7)]
        outcome = await call(box, "small.wait", '{"n": 0.1}')
        assert not any(task.done() for task in long)
        for task in long:
            task.cancel()
        await asyncio.wait(long)
    assert outcome == ToolOutcome("waited")


async def test_the_idempotency_key_travels_with_the_call(toolboxes: McpToolboxes) -> None:
    async with toolboxes.open([stdio()]) as box:
        meta = json.loads((await call(box, "small.meta")).content)
    assert meta["tarsy.dev/idempotency-key"] == "key-1"


async def test_cancelling_in_the_middle_of_a_call_leaves_no_process(toolboxes: McpToolboxes) -> None:
    pids: list[int] = []
    ready = asyncio.Event()

    async def execution() -> None:
        async with toolboxes.open([stdio("stubborn"), stdio(name="second")]) as box:
            pids.extend([int((await call(box, f"{name}.pid")).content) for name in ("small", "second")])
            pids.append(int((await call(box, "small.spawn")).content))
            ready.set()
            await call(box, "small.wait", '{"n": 600}', timeout=600)

    task = asyncio.create_task(execution())
    await asyncio.wait_for(ready.wait(), 60)
    task.cancel()
    await asyncio.sleep(0.2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not [pid for pid in pids if not await gone(pid)]


async def test_cancelling_while_servers_are_being_opened_leaves_no_process(toolboxes: McpToolboxes) -> None:
    before = children()

    async def execution() -> None:
        async with toolboxes.open([stdio("mute"), stdio(name="second")]):
            raise AssertionError("not reached")

    for delay in (0.0, 0.005, 0.02, 0.3):
        task = asyncio.create_task(execution())
        await asyncio.sleep(delay)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert children() <= before


async def test_a_toolbox_may_be_used_and_closed_by_different_tasks(toolboxes: McpToolboxes) -> None:
    opened = toolboxes.open([stdio()])
    box = await asyncio.create_task(opened.__aenter__())
    outcome = await asyncio.create_task(call(box, "small.pid"))
    await asyncio.create_task(opened.__aexit__(None, None, None))
    assert await gone(int(outcome.content))


def children() -> set[int]:
    found: set[int] = set()
    for task in Path("/proc/self/task").iterdir():
        found |= {int(pid) for pid in (task / "children").read_text().split()}
    return found


def is_empty_and_private(home: Path) -> bool:
    return not list(home.iterdir()) and home.stat().st_mode & 0o077 == 0


def exists(path: Path) -> bool:
    return path.exists()
