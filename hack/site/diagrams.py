"""Replaces the Mermaid diagrams of docs/ by SVG pictures.

Decision: forges draw Mermaid themselves, and the site shows the committed SVG, so neither `make docs` nor a reader
fetches a script. The name of a picture is a digest of its source: a changed diagram without a new picture fails the
build.
"""

import hashlib
import re
from pathlib import PurePosixPath
from typing import Final

from hack.components import CHECKOUT

FOLDER: Final = "assets/diagrams"
PICTURES: Final = CHECKOUT / "docs" / FOLDER
_FENCE: Final = re.compile(r"^```mermaid\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_TITLE: Final = re.compile(r"^\s*accTitle: *(.+)$", re.MULTILINE)


def sources(page: str) -> list[str]:
    """Returns the Mermaid sources of a page."""
    return _FENCE.findall(page)


def picture(source: str) -> str:
    """Returns the file name of a diagram's picture."""
    return f"{hashlib.sha256(source.encode()).hexdigest()[:12]}.svg"


def title(source: str) -> str:
    """Returns the description of a diagram for readers who do not see it.

    Raises:
        ValueError: the diagram has no `accTitle`.
    """
    found = _TITLE.search(source)
    if found is None:
        raise ValueError(f"a diagram has no line `accTitle: ...`: {source.strip().splitlines()[0]}")
    return found[1].strip()


def with_pictures(path: str, page: str) -> str:
    """Replaces the diagrams of a page by their pictures.

    Args:
        path: path of the page below docs/.
        page: its Markdown.

    Raises:
        ValueError: a picture is missing.
    """
    up = "../" * (len(PurePosixPath(path).parts) - 1)

    def image(found: re.Match[str]) -> str:
        name = picture(found[1])
        if not (PICTURES / name).is_file():
            raise ValueError(f"docs/{path}: a diagram has no picture {name}; run `make pictures`")
        return f"![{title(found[1])}]({up}{FOLDER}/{name}){{ .diagram }}"

    return _FENCE.sub(image, page)
