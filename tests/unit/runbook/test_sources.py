"""Which URLs runbooks may come from, and what is asked for instead of a page of GitHub."""

from __future__ import annotations

import pytest
from yarl import URL

from tarsy.plan.model import SecretKey
from tarsy.runbook.errors import RunbookUnavailable
from tarsy.runbook.sources import RunbookSource, raw_form, redact_url, source_of, sources

TOKEN = SecretKey(namespace="team-a", name="github", key="token")
RAW = "https://raw.githubusercontent.com/acme/books"


@pytest.mark.parametrize(
    ("page", "raw"),
    [
        ("https://github.com/acme/books/blob/main/pods/crash.md", f"{RAW}/main/pods/crash.md"),
        ("https://www.github.com/acme/books/blob/main/crash.md", f"{RAW}/main/crash.md"),
        ("https://github.com/acme/books/tree/main/crash.md", f"{RAW}/main/crash.md"),
        ("https://github.com/acme/books/raw/v1.2/crash.md", f"{RAW}/v1.2/crash.md"),
        ("https://github.com/acme/books/blob/release/1.2/pods/crash.md", f"{RAW}/release/1.2/pods/crash.md"),
        ("https://github.com/acme/books/blob/refs/heads/a/b/crash.md", f"{RAW}/refs/heads/a/b/crash.md"),
        ("https://github.com/acme/books/blob/a%2Fb/c%20d.md?plain=1#L3", f"{RAW}/a%2Fb/c%20d.md"),
        ("http://github.com/acme/books/blob/main/crash.md", f"{RAW}/main/crash.md"),
    ],
)
def test_a_page_of_github_is_asked_for_in_its_raw_form(page: str, raw: str) -> None:
    assert str(raw_form(URL(page))) == raw


@pytest.mark.parametrize(
    "url",
    [
        f"{RAW}/main/crash.md?token=x",
        "https://github.com/acme/books",
        "https://github.com/acme/books/issues/1",
        "https://gitlab.example/acme/books/blob/main/crash.md",
    ],
)
def test_other_urls_stay_as_they_are(url: str) -> None:
    assert str(raw_form(URL(url))) == url


@pytest.mark.parametrize(
    ("listed", "url", "good"),
    [
        ("wiki.example", "https://wiki.example/a", True),
        ("wiki.example", "https://WIKI.example./a", True),
        ("wiki.example:443", "https://wiki.example/a", True),
        ("wiki.example", "https://wiki.example:443/a", True),
        ("wiki.example", "https://wiki.example:8443/a", False),
        ("wiki.example:8443", "https://wiki.example:8443/a", True),
        ("wiki.example:8443", "https://wiki.example/a", False),
        ("wiki.example", "https://evil.wiki.example/a", False),
        ("wiki.example", "https://wiki.example.evil/a", False),
        ("wiki.example", "https://evil/wiki.example", False),
        ("wiki.example", "https://evil/?https://wiki.example/", False),
        ("github.com", f"{RAW}/main/a.md", True),
        ("raw.githubusercontent.com", "https://github.com/acme/books/blob/main/a.md", True),
        ("github.com", "https://gist.github.com/a", False),
    ],
)
def test_a_url_must_be_of_a_host_on_the_list(listed: str, url: str, good: bool) -> None:
    among = sources((), [RunbookSource(listed)])
    if good:
        assert source_of(URL(url), among).trusted is False
    else:
        with pytest.raises(RunbookUnavailable, match=r"is not on the list; add it to spec\.runbookHosts"):
            source_of(URL(url), among)


@pytest.mark.parametrize("url", ["ftp://wiki.example/a", "file:///etc/passwd", "/a", "https:///a"])
def test_other_schemes_are_refused(url: str) -> None:
    with pytest.raises((RunbookUnavailable, ValueError)):
        source_of(URL(url), sources((), [RunbookSource("wiki.example")]))


@pytest.mark.parametrize("user", ["a", "a:b", ":b"])
def test_credentials_in_a_url_are_refused(user: str) -> None:
    with pytest.raises(RunbookUnavailable, match="must not contain a user name or a password"):
        source_of(URL(f"https://{user}@wiki.example/a"), sources((), [RunbookSource("wiki.example")]))


def test_http_is_for_the_administrators_hosts_only() -> None:
    among = sources(["wiki.inner:80"], [RunbookSource("wiki.example")])
    with pytest.raises(RunbookUnavailable, match="https only"):
        source_of(URL("http://wiki.example/a"), among)
    assert source_of(URL("http://wiki.inner/a"), sources(["wiki.inner"], [])).trusted


def test_a_host_on_both_lists_is_trusted_and_keeps_its_token() -> None:
    found = sources(
        ["github.com", "wiki.inner"],
        [RunbookSource("raw.githubusercontent.com", token=TOKEN), RunbookSource("a.example")],
    )
    assert found == (
        RunbookSource("a.example"),
        RunbookSource("github.com", trusted=True, token=TOKEN),
        RunbookSource("wiki.inner", trusted=True),
    )


def test_what_people_see_of_a_url_holds_no_secret() -> None:
    assert redact_url("https://u:secret@wiki.example/a?token=secret#x") == "https://wiki.example/a"
    assert "secret" not in redact_url("https://[secret/a")
