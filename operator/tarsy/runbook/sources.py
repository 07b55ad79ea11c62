"""Resolves the source of a runbook URL: the administrator's hosts, the namespace's, and both forms of GitHub URLs.

Decision: GitHub is one source under three names. A page (`/blob/`, `/tree/`) is asked for in its raw form, with all
that follows as it is: ref and path are not told apart, since a ref may hold slashes; GitHub does that itself, by the
refs there are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from yarl import URL

from tarsy.plan.model import SecretKey
from tarsy.runbook.errors import RunbookUnavailable

GITHUB, GITHUB_RAW = "github.com", "raw.githubusercontent.com"
_GITHUB_NAMES = frozenset({GITHUB, "www.github.com", GITHUB_RAW})
_PAGE = re.compile(r"^/([^/]+/[^/]+)/(?:blob|tree|raw)/(.+)$")
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class RunbookSource:
    """A host that runbooks may come from; `trusted` by the administrator: any address, and http too."""

    host: str
    trusted: bool = False
    token: SecretKey | None = None


def sources(trusted: Iterable[str], of_namespace: Iterable[RunbookSource]) -> tuple[RunbookSource, ...]:
    """The sources of a run: the administrator's hosts, and those of the namespace.

    A host on both lists is the administrator's, with the namespace's token.
    """
    found: dict[str, RunbookSource] = {}
    for source in (*of_namespace, *(RunbookSource(host, trusted=True) for host in trusted)):
        host = _canonical(source.host)
        before = found.get(host, RunbookSource(host))
        found[host] = RunbookSource(host, before.trusted or source.trusted, before.token or source.token)
    return tuple(found[host] for host in sorted(found))


def source_of(url: URL, among: Iterable[RunbookSource]) -> RunbookSource:
    """Returns the source of a URL.

    Raises:
        RunbookUnavailable: it is of none, or asks for something that its source does not give.
    """
    if url.scheme not in _PORTS or not url.host:
        raise RunbookUnavailable("the URL must begin with https:// and have a host")
    if url.user is not None or url.password is not None:
        raise RunbookUnavailable(
            "the URL must not contain a user name or a password; put a token into the Secret of its host"
        )
    host = (url.raw_host or "").rstrip(".").lower()
    name = _canonical(host if url.port == _PORTS[url.scheme] else f"{host}:{url.port}")
    source = next((source for source in among if source.host == name), None)
    if source is None:
        raise RunbookUnavailable(
            f"host {name} is not on the list; add it to spec.runbookHosts of the InvestigationDefaults, "
            "or start the operator with --runbook-host"
        )
    if url.scheme == "http" and not source.trusted:
        raise RunbookUnavailable(f"host {name} is allowed by https only; use https://")
    return source


def raw_form(url: URL) -> URL:
    """The URL of a text instead of the page that shows it, for GitHub; any other as it is."""
    if url.host not in _GITHUB_NAMES - {GITHUB_RAW}:
        return url
    page = _PAGE.match(url.raw_path)
    if page is None:
        return url
    return URL(f"https://{GITHUB_RAW}/{page[1]}/{page[2]}", encoded=True)


def redact_url(url: str) -> str:
    """Returns a URL for display, without its parts that may be secret."""
    try:
        parsed = URL(url)
        return str(parsed.with_user(None).with_query(None).with_fragment(None))
    except ValueError:
        return "(an invalid URL)"


def _canonical(host: str) -> str:
    """A host as lists and URLs are compared by; a port that https has anyway is none."""
    host = host.lower().removesuffix(":443")
    return GITHUB if host in _GITHUB_NAMES else host
