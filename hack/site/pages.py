"""All pages of the site: those of docs/, those made of the code, and those that stand elsewhere in the tree.

Decision: nothing that is made is committed; the site and the test of its links read the same mapping of path to text.
"""

import re
from pathlib import PurePosixPath
from typing import Final

from hack.components import CHECKOUT
from hack.site import commands, kinds, routes

DOCS: Final = CHECKOUT / "docs"
# Pages that stand beside what they are about; a page of the site each.
TAKEN: Final = {
    "reference/roles.md": "manifests/roles.md",
    "reference/manifests.md": "manifests/README.md",
    "reference/metrics.md": "manifests/components/monitoring/README.md",
}
# One section of a page; a page of the site.
SECTIONS: Final = {"reference/benchmarks.md": ("README.md", "Benchmarks")}
_LINK: Final = re.compile(r"\[([^\]]*)\]\((?!https?:)([^)#\s]+)(#[^)\s]*)?\)")


def generated() -> dict[str, str]:
    """The pages that do not stand in docs/, by path below it."""
    return {**kinds.pages(), **commands.pages(), **routes.pages(), **taken()}


def written() -> dict[str, str]:
    """The pages of docs/."""
    return {path.relative_to(DOCS).as_posix(): path.read_text(encoding="utf-8") for path in sorted(DOCS.rglob("*.md"))}


def taken() -> dict[str, str]:
    """The pages that stand elsewhere; what they link to is the site's page where there is one, else named only."""
    whole = {page: (source, (CHECKOUT / source).read_text(encoding="utf-8")) for page, source in TAKEN.items()}
    parts = {
        page: (source, section((CHECKOUT / source).read_text(encoding="utf-8"), heading))
        for page, (source, heading) in SECTIONS.items()
    }
    return {page: _at_home(source, text) for page, (source, text) in {**whole, **parts}.items()}


def section(text: str, heading: str) -> str:
    """A section of the second level as a page of its own.

    Raises:
        ValueError: there is no such section.
    """
    found = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    if found is None:
        raise ValueError(f"no section {heading!r}; its page is named in SECTIONS of hack/site/pages.py")
    return f"# {heading}\n{found[1]}"


def _at_home(source: str, text: str) -> str:
    pages = {where: name for name, where in TAKEN.items()}

    def moved(found: re.Match[str]) -> str:
        target = (PurePosixPath(source).parent / found[2]).as_posix()
        if target in pages:
            return f"[{found[1]}]({PurePosixPath(pages[target]).name}{found[3] or ''})"
        return f"{found[1]} (`{target}`)"

    return _LINK.sub(moved, text)
