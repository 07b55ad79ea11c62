"""Collects all pages of the site: docs/, generated pages, and pages elsewhere in the repository.

Decision: no generated page is committed. The site and the test of its links read the same mapping of path to text.
"""

import re
from pathlib import PurePosixPath
from typing import Final

from hack.components import CHECKOUT
from hack.site import commands, kinds, routes, settings

DOCS: Final = CHECKOUT / "docs"
# Pages that stand beside their subject, and their place in the site.
TAKEN: Final = {
    "reference/roles.md": "manifests/roles.md",
    "reference/manifests.md": "manifests/README.md",
    "reference/metrics.md": "manifests/components/monitoring/README.md",
}
_LINK: Final = re.compile(r"\[([^\]]*)\]\((?!https?:)([^)#\s]+)(#[^)\s]*)?\)")


def generated() -> dict[str, str]:
    """Returns the pages that do not stand in docs/, by path below it."""
    return {**kinds.pages(), **commands.pages(), **settings.pages(), **routes.pages(), **taken()}


def written() -> dict[str, str]:
    """Returns the pages of docs/."""
    return {path.relative_to(DOCS).as_posix(): path.read_text(encoding="utf-8") for path in sorted(DOCS.rglob("*.md"))}


def taken() -> dict[str, str]:
    """Returns the pages that stand elsewhere. A link becomes one to the site's page, or a name if there is none."""
    return {page: _at_home(source, (CHECKOUT / source).read_text(encoding="utf-8")) for page, source in TAKEN.items()}


def _at_home(source: str, text: str) -> str:
    pages = {where: name for name, where in TAKEN.items()}

    def moved(found: re.Match[str]) -> str:
        target = (PurePosixPath(source).parent / found[2]).as_posix()
        if target in pages:
            return f"[{found[1]}]({PurePosixPath(pages[target]).name}{found[3] or ''})"
        return f"{found[1]} (`{target}`)"

    return _LINK.sub(moved, text)
