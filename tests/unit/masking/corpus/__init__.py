"""Contains the corpora: texts with secrets, by pattern and by family, and texts without."""

import random
import re
import string
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

_DRAWN = re.compile(r"%(alnum|upperhex|upper|lower|hex|base64|url)_?(\d+)%")
_MARKED = re.compile("«(.*?)»", re.DOTALL)
_LETTERS = string.ascii_letters + string.digits
_ALPHABETS = {
    "alnum": _LETTERS,
    "upper": string.ascii_uppercase + string.digits,
    "upperhex": "0123456789ABCDEF",
    "lower": string.ascii_lowercase + string.digits,
    "hex": "0123456789abcdef",
    "base64": _LETTERS + "+/",
    "url": _LETTERS + "-_",
}


@dataclass(frozen=True, slots=True)
class Case:
    """A text with secrets; `kept` is what must be left between them."""

    pattern: str
    text: str
    secrets: tuple[str, ...]
    kept: tuple[str, ...]


def _read(name: str) -> Any:
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load((Path(__file__).parent / name).read_text(encoding="utf-8"), loader)


def _drawn(found: re.Match[str]) -> str:
    generator = random.Random(found[0])
    alphabet, length = found[1], int(found[2])
    while True:
        drawn = "".join(generator.choices(_ALPHABETS[alphabet], k=length))
        if alphabet == "upper" or (drawn[0].isalnum() and drawn[-1].isalnum() and re.search(r"\d.*\d", drawn)):
            return drawn


def secrets(name: str = "secrets.yaml") -> list[Case]:
    """Every text with secrets, with the pattern that must find them, or the family they are of."""
    cases = []
    for pattern, texts in _read(name).items():
        for marked in texts:
            drawn = _DRAWN.sub(_drawn, marked)
            found = tuple(_MARKED.findall(drawn))
            kept = tuple(part for index, part in enumerate(_MARKED.split(drawn)) if index % 2 == 0 and part.strip())
            cases.append(Case(pattern, _MARKED.sub(r"\1", drawn), found, kept))
    return cases


def survivors(name: str = "survivors.yaml") -> list[str]:
    """Every text that must stay."""
    texts: list[str] = _read(name)
    return texts
