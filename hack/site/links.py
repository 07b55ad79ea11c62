"""Finds dead links in the pages: to pages, headings and files.

Decision: anchors are computed as the site's Markdown computes them (python-markdown's toc), which a test compares where
that is installed; so dead links are found where the site cannot be built, too.
"""

import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Final
from urllib.parse import urlsplit

_FENCE: Final = re.compile(r"^(```|~~~).*?^\1[ \t]*$", re.MULTILINE | re.DOTALL)
_CODE: Final = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)", re.DOTALL)
_LINK: Final = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^)\s]+)(?: \"[^\"]*\")?\)")
_HEADING: Final = re.compile(r"^#{1,6} +(.+?) *#*$", re.MULTILINE)
_NAMED: Final = re.compile(r"\s*\{:? *#([\w-]+) *\}$")


def dead(pages: Mapping[str, str], files: Collection[str] = ()) -> list[str]:
    """The dead links, each a sentence with its page.

    Args:
        pages: Markdown by path.
        files: other paths that may be linked to.
    """
    return [
        f"{page}: {target}: {why}" for page, text in pages.items() for target, why in _dead(page, text, pages, files)
    ]


def targets(text: str) -> list[str]:
    """What a page links to."""
    return _LINK.findall(_CODE.sub("", _FENCE.sub("", text)))


def anchors(text: str) -> set[str]:
    """The ids of a page's headings."""
    found: set[str] = set()
    for heading in _HEADING.findall(_FENCE.sub("", text)):
        named = _NAMED.search(heading)
        slug = named[1] if named else slugify(heading)
        number = 1
        while slug in found:
            slug = f"{slug.removesuffix(f'_{number - 1}')}_{number}"
            number += 1
        found.add(slug)
    return found


def slugify(heading: str) -> str:
    """The id of a heading, as python-markdown's toc makes it."""
    text = _LINK.sub(lambda link: link[0][1:].partition("](")[0], heading).replace("`", "")
    text = re.sub(r"[*_]{1,2}(\S.*?\S|\S)[*_]{1,2}(?!\w)", r"\1", text)
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode("ascii")
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())


def _dead(page: str, text: str, pages: Mapping[str, str], files: Collection[str]) -> Iterator[tuple[str, str]]:
    for target in targets(text):
        url = urlsplit(target)
        if url.scheme:
            if url.scheme not in ("http", "https", "mailto") or (url.scheme != "mailto" and not url.hostname):
                yield target, "no address that a browser opens"
            continue
        path = _resolved(page, url.path) if url.path else page
        if path not in pages:
            if path not in files:
                yield target, "there is no such page"
        elif url.fragment and url.fragment not in anchors(pages[path]):
            yield target, "the page has no such heading"


def _resolved(page: str, target: str) -> str:
    parts: list[str] = list(PurePosixPath(page).parent.parts)
    for part in PurePosixPath(target).parts:
        if part == "..":
            if not parts:
                return target  # above the root: no page
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts)
