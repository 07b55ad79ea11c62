"""The command lines: wrong use ends with 2, what a person can mend with 1, and shells are told what may come next."""

import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from tarsy.cli.completion import candidates, script
from tarsy.cli.main import app
from tarsy.cli.plugin import new_app

RUNNER = CliRunner()
COMMANDS = [
    "accept-tools", "alerts", "approvals", "approve", "calibration", "cancel", "changes", "chat", "compare",
    "completion", "conclude", "eval", "objects", "plan", "precedents", "queue", "quota", "reject", "replay", "retry",
    "review", "reviews", "schedules", "score", "scores", "skills", "timeline", "tools", "trace", "triage", "usage",
    "verdict", "verify", "why", "workers",
]  # fmt: skip


@pytest.mark.parametrize(
    "line",
    [
        "timeline",
        "timeline ../../secrets",
        "timeline run -n Shop",
        "timeline run -o xml",
        "trace run --llm 1 --mcp 2",
        "replay run --on-miss Guess",
        "replay run --chain ../x",
        "usage --by model",
        "usage --since yesterday",
        "usage --by author",
        "usage --days 7",
        "usage --days 0 --server https://x",
        "usage --days 367 --server https://x",
        "usage --days 7 --by day --server https://x",
        "alerts submit",
        "completion csh",
        "chat run",
        "chat run ''",
        "objects alert",
        "objects mcpserver/x --hours 169",
        "unheard-of",
    ],
)
def test_wrong_use_ends_with_2(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TARSY_DATABASE_URL", "TARSY_SERVER"):
        monkeypatch.delenv(name, raising=False)
    arguments = [word.strip("'") for word in line.split()]
    for one in (app, new_app()):
        result = RUNNER.invoke(one, arguments)
        assert result.exit_code == 2, result.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--kubeconfig", "/none/such"), "there is no kubeconfig at /none/such"),
        (("--server", "http://tarsy.example.org"), "a token is sent over https only"),
        (("--server", "ftp://x"), "--server takes a URL"),
        (("--server", "https://x", "--token-file", "/none/such"), "--token-file /none/such cannot be read"),
    ],
)
def test_what_can_be_mended_is_one_sentence_and_1(
    arguments: tuple[str, ...], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "token-file" not in "".join(arguments):
        monkeypatch.setenv("TARSY_TOKEN", "token")
    result = RUNNER.invoke(new_app(), ["why", "run", *arguments])
    assert result.exit_code == 1
    assert result.stderr.startswith("tarsy: ") and words in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_tarsy_has_every_command_of_the_plugin() -> None:
    assert candidates(typer.main.get_command(new_app()), [""]) == COMMANDS
    assert set(COMMANDS) <= set(candidates(typer.main.get_command(app), [""]))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("ti", ["timeline"]),
        ("timeline run -o ", ["text", "wide", "json", "yaml"]),
        ("timeline run --output j", ["json"]),
        ("trace run --m", ["--mcp"]),
        ("alerts ", ["submit"]),
        ("alerts submit --wa", ["--wait"]),
        ("usage --by al", ["alertType"]),
        ("completion ", ["bash", "zsh", "fish"]),
        ("-n shop wh", ["why"]),
        ("chat run ", []),
    ],
)
def test_what_may_come_next_is_told_from_the_commands(line: str, expected: list[str]) -> None:
    assert candidates(typer.main.get_command(new_app()), line.split(" ")) == expected


def test_names_that_cannot_be_had_are_not_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    assert candidates(typer.main.get_command(new_app()), ["why", ""]) == []


@pytest.mark.parametrize("program", ["tarsy", "kubectl-tarsy"])
def test_bash_takes_its_script_and_completes_by_it(program: str, tmp_path: Path) -> None:
    beside = tmp_path / program
    beside.write_text('#!/bin/sh\nprintf "%s|" "$@" >&3; printf "one\\ntwo\\n"\n')
    beside.chmod(0o755)
    asked = tmp_path / "asked"
    function = f"_{program.replace('-', '_')}_completion"
    ask = f'COMP_WORDS=({program} why ""); COMP_CWORD=2; {function}; echo "${{COMPREPLY[@]}}"'
    command = f"exec 3>{asked}; PATH={tmp_path}:$PATH\n{script('bash', program)}\n{ask}"
    found = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True, timeout=60)
    assert found.stdout == "one two\n"
    assert asked.read_text() == "__complete|why||"


def test_scripts_of_other_shells_ask_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    for shell in ("zsh", "fish"):
        text = script(shell, "kubectl-tarsy")  # type: ignore[arg-type]
        assert "kubectl-tarsy __complete" in text and "@" + "PROGRAM@" not in text
    result = RUNNER.invoke(new_app(), ["completion", "fish"])
    assert result.exit_code == 0 and result.stdout.startswith("function __")


def test_help_does_not_import_the_product() -> None:
    rooms = ("kopf", "asyncpg", "kubernetes", "aiohttp")
    code = f"import sys, tarsy.cli.main; print([name for name in {rooms} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert found.stdout.strip() == "[]"
