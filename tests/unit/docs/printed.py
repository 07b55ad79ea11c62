"""Reads the commands that pages print: in blocks of code, between words, and in comments of the manifests."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from hack.site.pages import written

CHECKOUT: Final = Path(__file__).parents[3]
OUTSIDE: Final = ("README.md", "CONTRIBUTING.md", "manifests/README.md", "manifests/roles.md")
"""Pages outside docs/, by path in the checkout."""
PROGRAMS: Final = ("docker", "helm", "kubectl", "make", "operator-sdk", "oras", "tarsy")
_BLOCK: Final = re.compile(r"^( *)```(\w*)[^\n]*\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_SPAN: Final = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_COMMENT: Final = re.compile(r"^# {2,}(\w.*)$", re.MULTILINE)
_SET: Final = re.compile(r"[A-Z][A-Z0-9_]*=.*")
_SHELL: Final = ("", "sh", "console", "text")


@dataclass(frozen=True)
class Printed:
    """A command in a page."""

    page: str
    program: str
    words: tuple[str, ...]
    """Its arguments."""

    def __str__(self) -> str:
        return f"{self.page}: {self.program} {' '.join(self.words)}"


@cache
def pages() -> dict[str, str]:
    """Returns the pages by path in docs/, and those outside by path in the checkout."""
    return {**written(), **{name: (CHECKOUT / name).read_text("utf-8") for name in OUTSIDE}}


def blocks(*languages: str) -> Iterator[tuple[str, str]]:
    """Yields the blocks of code of these languages, without their indentation, each with its page."""
    for page, text in sorted(pages().items()):
        for found in _BLOCK.finditer(text):
            if found[2] in languages:
                yield page, re.sub(f"^{found[1]}", "", found[3], flags=re.MULTILINE)


def _texts() -> Iterator[tuple[str, str]]:
    """Yields all texts that may be commands."""
    for page, text in blocks(*_SHELL):
        for line in text.replace("\\\n", " ").splitlines():
            yield page, line.removeprefix("$ ")
    for page, text in sorted(pages().items()):
        if not page.startswith("gallery/"):  # generated: words of an investigation, not of a shell
            yield from ((page, found) for found in _SPAN.findall(_BLOCK.sub("", text)))
    for path in sorted((CHECKOUT / "manifests").rglob("*.yaml")):
        page = str(path.relative_to(CHECKOUT))
        yield from ((page, found) for found in _COMMENT.findall(path.read_text("utf-8")))


def parts(text: str) -> Iterator[list[str]]:
    """Yields the simple commands of a line, without its comment; nothing if it is no line of a shell."""
    lexer = shlex.shlex(re.sub(r"\s#\s.*", "", text), posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split = True
    lexer.commenters = ""
    part: list[str] = []
    try:
        for word in lexer:
            if set(word) <= set("|&;<>"):
                yield part
                part = []
            else:
                part.append(word)
    except ValueError:
        return
    yield part


@cache
def commands(*programs: str) -> tuple[Printed, ...]:
    """Returns the commands of these programs in all pages."""
    found = []
    for page, text in _texts():
        for part in parts(text):
            while part and _SET.fullmatch(part[0]):
                part = part[1:]
            if part and part[0] in programs and not part[-1].startswith("("):  # words about a program
                found.append(Printed(page, part[0], tuple(part[1:])))
    return tuple(found)
