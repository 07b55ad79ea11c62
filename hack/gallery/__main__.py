"""Writes docs/gallery and its pictures: `make gallery`. With `--text` it takes no pictures, and needs no browser."""

import argparse
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


async def main(*, text_only: bool) -> None:
    """Takes the pictures, writes the pages, and removes those that have no scenario any more."""
    all_played = await play_all()
    if not text_only:
        from hack.gallery.pictures import take_pictures  # needs a browser

        await take_pictures(all_played, DOCS / PICTURES)
    pages = await written(all_played)
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.glob("*.md"):
        if old.name not in pages:
            old.unlink()
    for name, text in pages.items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    print(f"docs/gallery: {len(pages)} pages")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--text", action="store_true", help="write the pages only")
    asyncio.run(main(text_only=parser.parse_args().text))
