"""The diagrams of the pages have pictures, and the pictures fetch nothing."""

import re
from functools import cache

import pytest
from hack.site.diagrams import PICTURES, picture, sources, title, with_pictures
from hack.site.pages import generated, written


@cache
def diagrams() -> list[str]:
    return [source for text in {**written(), **generated()}.values() for source in sources(text)]


def test_each_diagram_has_its_picture_and_no_picture_is_stale() -> None:
    assert diagrams()
    assert {path.name for path in PICTURES.glob("*")} == {picture(source) for source in diagrams()}, "run make pictures"


def test_a_page_shows_the_picture_with_its_description() -> None:
    for source in diagrams():
        page = with_pictures("below/page.md", f"# Page\n\n```mermaid\n{source}```\n")
        assert f"![{title(source)}](../assets/diagrams/{picture(source)})" in page


def test_a_changed_diagram_stops_the_build_with_the_remedy() -> None:
    with pytest.raises(ValueError, match=r"docs/page.md: .* run `make pictures`"):
        with_pictures("page.md", "```mermaid\nflowchart LR\n  accTitle: New\n  A --> B\n```\n")


def test_a_diagram_without_a_description_is_refused() -> None:
    with pytest.raises(ValueError, match="accTitle"):
        title("flowchart LR\n")


def test_pictures_fetch_nothing() -> None:
    for path in (*PICTURES.glob("*.svg"), PICTURES.parent / "timeline.svg"):
        assert re.findall(r"@import|url\((?!#)[^)]*\)|(?:href|src)=\"(?!#)[^\"]*\"", path.read_text("utf-8")) == [], (
            path
        )
