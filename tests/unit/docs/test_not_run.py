"""Holds the page of what was run to the commands: those that need pods, engines or programs of others are listed there.

Decision: other pages do not say what nobody ran. A reader who wants to know finds all of it in one place.
"""

import re

from unit.docs.printed import commands, pages
from unit.docs.test_commands import plain

PAGE = "testing.md"
HEADING = "## What we ran of the pages"
NEED_MORE = {
    *(
        "docker build",
        "docker push",
        "docker buildx imagetools inspect",
        "kubectl exec",
        "kubectl logs",
        "kubectl port-forward",
    ),
    *("kubectl rollout status", "kubectl krew", "make kind", "operator-sdk run", "oras push"),
}
"""Commands that need pods, a container engine, a registry of others, or a program that cannot be had for the tests."""
RUN_THERE = {("docker build", "olm.md"), ("docker push", "olm.md")}
"""Commands of `NEED_MORE` that were run on a page: the image of the bundle has no base image."""
_SAID = re.compile(
    r"\bnot run(?::| as printed)|\bwas not tried\b|\bcannot be had here\b|\bwe did not run\b", re.IGNORECASE
)


def _listed() -> set[tuple[str, str]]:
    """Returns the commands of the page's first table, each with its pages."""
    table = pages()[PAGE].partition(HEADING)[2].partition("|---|---|---|\n")[2].partition("\n\n")[0]
    found = set()
    for line in table.splitlines():
        names, where, _ = (cell.strip() for cell in line.strip("|").split(" | "))
        linked = re.findall(r"\]\(([\w-]+\.md)\)", where)
        linked += [f"{name}.md" for name in re.findall(r"(?<![\w\[/])(?:manifests/)?README", where)]
        found |= {(name, page) for name in re.findall(r"`([^`]+)`", names) for page in linked}
    return found


def _printed() -> set[tuple[str, str]]:
    """Returns the commands of `NEED_MORE` with the pages that print them."""
    found = set()
    for one in commands(*{name.partition(" ")[0] for name in NEED_MORE}):
        words = list(plain(one.words))
        names = {" ".join([one.program, *words[:count]]) for count in (1, 2, 3)}
        found |= {(name, one.page) for name in names & NEED_MORE if one.page != PAGE}
    return found


def test_every_command_that_needs_more_than_the_tests_have_is_listed_with_each_of_its_pages() -> None:
    listed, printed = _listed(), _printed()
    assert {name for name, _ in listed} == NEED_MORE
    assert printed - RUN_THERE - listed == set()
    shown = {page for _, page in printed}
    assert {page for _, page in listed} - shown == set(), "a page is listed that prints no such command"


def test_no_other_page_says_what_was_not_run() -> None:
    told = re.compile(r"\[what we ran\]\(testing\.md#what-we-ran-of-the-pages\)", re.IGNORECASE)
    found = {
        f"{page}: {said[0]}"
        for page, text in pages().items()
        if page != PAGE and not page.startswith("gallery/")
        for said in _SAID.finditer(text)
    }
    assert found == set()
    for page in ("helm.md", "olm.md", "gitops.md", "headlamp.md", "install.md", "slack.md", "tool-servers.md"):
        assert told.search(pages()[page]), page
