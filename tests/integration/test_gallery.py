"""The pages of docs/gallery are what the product prints now."""

import asyncio
from collections.abc import Mapping

import pytest
from hack.gallery.__main__ import DOCS, FOLDER, play_all, written
from hack.gallery.pages import PICTURES

pytestmark = pytest.mark.heavy("all pages of the gallery; the golden scenarios are beside it")


@pytest.fixture(scope="module")
def pages() -> Mapping[str, str]:
    """The pages as `make gallery` would write them."""

    async def write() -> Mapping[str, str]:
        return await written(await play_all())

    return asyncio.run(write())


def test_the_pages_of_the_gallery_are_current(pages: Mapping[str, str]) -> None:
    committed = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.md")}
    stale = sorted(name for name in {*committed, *pages} if committed.get(name) != pages.get(name))
    assert not stale, "run `python -m hack.gallery --text` with PYTHONPATH=., and read what changed"


def test_the_gallery_has_twelve_investigations(pages: Mapping[str, str]) -> None:
    assert len(pages.keys() - {"index.md"}) == 12


def test_every_investigation_has_a_small_picture(pages: Mapping[str, str]) -> None:
    sizes = {path.stem: path.stat().st_size for path in (DOCS / PICTURES).glob("*.png")}
    assert sizes.keys() == {name.removesuffix(".md") for name in pages} - {"index"}
    assert max(sizes.values()) < 150_000
