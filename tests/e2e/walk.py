"""Runs a page of docs/ as a reader does: writes its files, runs its commands, and compares what they print.

A block of `sh` is run, a block of `yaml` is written to the file that the text before it names, and each line of a block
of `text` must be printed. Names that are generated, ages and figures may differ.
"""

import asyncio
import getpass
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
_BLOCK = re.compile(r"^```(sh|yaml|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"`([a-z-]+\.yaml)`")
_VARYING = (
    (re.compile(rf"\b{re.escape(getpass.getuser())}\b"), "you"),
    (re.compile(r"-replay-[a-z0-9]{5}\b"), "-replay-ID"),
    (re.compile(r"\b(?=[a-f]*\d)[0-9a-f]{8,16}\b"), "ID"),
    (re.compile(r"\b(\d+[dhms])+(?=\s|$)"), "AGE"),
    (re.compile(r"\d[\d,.]*"), "N"),
    (re.compile(r"\s+"), " "),
)


@dataclass(frozen=True, slots=True)
class Walk:
    """The commands of a page as one script, and the lines that they print."""

    script: str
    printed: tuple[str, ...]


def read_walk(page: str) -> Walk:
    """Reads a page of docs/."""
    text = (DOCS / page).read_text()
    script, printed, end = ["set -euo pipefail"], list[str](), 0
    for block in _BLOCK.finditer(text):
        kind, content = block.groups()
        if kind == "sh":
            script.append(content)
        elif kind == "yaml":
            name = _FILE.findall(text[end : block.start()])[-1]
            script.append(f"printf %s {shlex.quote(content)} >{name}\n")
        else:
            printed += [line for line in content.splitlines() if line.strip() not in ("", "...")]
        end = block.end()
    return Walk("\n".join(script), tuple(printed))


def comparable(line: str) -> str:
    """Returns a line without what differs from run to run."""
    for pattern, instead in _VARYING:
        line = pattern.sub(instead, line)
    return line.strip()


async def walked(page: str, folder: Path, environment: Mapping[str, str], seconds: float = 300.0) -> None:
    """Follows a page; fails if a command fails or prints something else.

    Args:
        page: name of the page below docs/.
        folder: where its files are written; it does not exist.
        environment: of the commands.
        seconds: most of the time that it may take.
    """
    walk = read_walk(page)
    await asyncio.to_thread(folder.mkdir)
    process = await asyncio.create_subprocess_exec(
        *("timeout", f"{seconds:g}", "bash", "-c", walk.script),
        cwd=folder,
        env=dict(environment),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    out, _ = await process.communicate()
    shown = out.decode()
    assert process.returncode == 0, shown
    found = {comparable(line) for line in shown.splitlines()}
    missing = [line for line in walk.printed if comparable(line) not in found]
    assert not missing, "\n".join(["the page says, and no command prints:", *missing, "", shown])
