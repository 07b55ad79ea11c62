"""Writes docs/gallery: `make gallery`."""

import asyncio
from collections.abc import Mapping

from hack.components import CHECKOUT
from hack.gallery.pages import PICTURES, index_page, page_of
from hack.gallery.playing import Played, play
from hack.gallery.scenario import load_scenarios

DOCS = CHECKOUT / "docs"
FOLDER = DOCS / "gallery"


async def play_all() -> list[Played]:
    """Runs all scenarios, one after the other."""
    return [await play(scenario) for scenario in load_scenarios()]


async def written(all_played: list[Played]) -> Mapping[str, str]:
    """Returns the text of all pages by the name of the file."""
    pages = {"index.md": index_page(all_played)}
    for one in all_played:
        has_picture = (DOCS / PICTURES / f"{one.head.name}.png").exists()
        pages[f"{one.head.name}.md"] = await page_of(one, picture=has_picture)
    return pages


async def main() -> None:
    """Writes the pages, and removes those that have no scenario any more."""
    pages = await written(await play_all())
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.glob("*.md"):
        if old.name not in pages:
            old.unlink()
    for name, text in pages.items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    print(f"docs/gallery: {len(pages)} pages")


if __name__ == "__main__":
    asyncio.run(main())
