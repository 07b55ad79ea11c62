"""Reads a file of a commit from a Git server (protocol 2 over HTTPS).

Decision: one object a request, where the server supports partial clones (`filter`), as all large hosts do: little is
sent, however large the repository. Where it does not, the first response has the whole commit without history, within
the limits. Redirects are followed on the same host only; no credentials are sent, so only public repositories are read.
"""

import asyncio
import ssl
from collections.abc import Collection
from typing import Final
from urllib.parse import urljoin

import aiohttp

from tarsy.git.pack import GitObject, Pack, object_id
from tarsy.git.packet_lines import fetch_request, not_git, pack_of, packets
from tarsy.git.source import MAX_GIT_FILE_BYTES, GitFile, GitLimits, GitProblem
from tarsy.git.tree import TreeEntry, tree_entries, tree_of
from tarsy.outbound.address_check import AddressCheck, NotAllowed, Resolve, resolve_host
from tarsy.outbound.connector import PinnedConnector
from tarsy.plan.place import Place

MOST_GIT_REDIRECTS: Final = 3
_REDIRECTS = (301, 302, 303, 307, 308)
_PROTOCOL = {"Git-Protocol": "version=2", "User-Agent": "tarsy", "Accept-Encoding": "identity"}
_SERVICE = "git-upload-pack"
_LIMITS = GitLimits()
_NO_COMMIT = "commit: the repository does not have it; push it, or name another"
_A_PAGE = "url: the server redirects to a page; name the URL that `git clone` takes"


async def read_git_file(
    file: GitFile,
    judge: AddressCheck,
    *,
    tls: ssl.SSLContext | None = None,
    look_up: Resolve = resolve_host,
    limits: GitLimits = _LIMITS,
) -> bytes:
    """Returns the content of a file.

    Args:
        file: the repository, commit and path.
        judge: checks the addresses of the host.
        tls: verifies the server; None: with the system's certificate authorities.
        look_up: resolves names.
        limits: of sizes, requests and time.

    Raises:
        GitProblem: it cannot be read; the message names the field and the remedy.
    """
    place = file.place()
    file.check()
    connector = PinnedConnector(place.host, judge, look_up=look_up, ssl=tls or True)
    try:
        async with (
            asyncio.timeout(limits.seconds),
            aiohttp.ClientSession(
                connector=connector,
                auto_decompress=False,
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None),
            ) as http,
        ):
            return await _Remote(http, place, file, limits).read()
    except TimeoutError:
        text = f"url: host {place.host} took longer than {limits.seconds:g} s; try again later"
        raise GitProblem("GitUnavailable", text) from None
    except NotAllowed as error:
        raise GitProblem("GitHostNotAllowed", f"url: {error}") from None
    except aiohttp.ClientConnectorDNSError as error:
        why = error.os_error.strerror or f"host {place.host} is not found"
        raise GitProblem("GitUnavailable", f"url: {why}; check the URL") from None
    except aiohttp.ClientConnectorCertificateError:
        text = f"url: the certificate of host {place.host} is not trusted; ask the administrator to set --git-ca-file"
        raise GitProblem("GitUnavailable", text) from None
    except (aiohttp.ClientError, OSError) as error:
        # Its text may repeat what a server answered; its kind does not.
        text = f"url: host {place.host} could not be asked ({type(error).__name__}); check the URL"
        raise GitProblem("GitUnavailable", text) from None


class _Remote:
    """One repository, of which one file is read."""

    def __init__(self, http: aiohttp.ClientSession, place: Place, file: GitFile, limits: GitLimits) -> None:
        self._http = http
        self._place = place
        self._base = place.url.rstrip("/")
        self._file = file
        self._limits = limits
        self._algorithm = "sha1" if len(file.commit) == 40 else "sha256"
        self._requests = 0
        self._features: Collection[str] = ()
        self._packs: list[Pack] = []

    async def read(self) -> bytes:
        """Walks from the commit to the file."""
        self._features = await self._advertised()
        commit = await self._object(self._file.commit, "commit", shallow=True)
        parts = self._file.path.split("/")
        tree = tree_of(commit.content)
        for depth, part in enumerate(parts):
            entry = self._entry((await self._object(tree, "tree")).content, part, depth)
            if depth == len(parts) - 1:
                return await self._content(entry)
            if entry.kind != "tree":
                raise self._missing(depth + 1, f"is no folder ({entry.kind})")
            tree = entry.oid
        raise AssertionError("a path has at least one part")

    def _entry(self, tree: bytes, name: str, depth: int) -> TreeEntry:
        for entry in tree_entries(tree, len(self._file.commit) // 2):
            if entry.name == name.encode():
                return entry
        raise self._missing(depth + 1, "does not exist in this commit")

    async def _content(self, entry: TreeEntry) -> bytes:
        if entry.kind != "file":
            told = {"tree": "is a folder", "link": "is a symbolic link", "module": "is a submodule"}[entry.kind]
            raise self._missing(None, told)
        found = await self._object(entry.oid, "blob")
        if len(found.content) > MAX_GIT_FILE_BYTES:
            text = f"path: {self._file.path} has {len(found.content):,} bytes, at most {MAX_GIT_FILE_BYTES:,} are read"
            raise GitProblem("GitTooLarge", text)
        return found.content

    def _missing(self, parts: int | None, why: str) -> GitProblem:
        name = "/".join(self._file.path.split("/")[:parts])
        return GitProblem("GitPathMissing", f"path: {name} {why}; name a file of commit {self._file.commit[:12]}")

    async def _object(self, oid: str, kind: str, *, shallow: bool = False) -> GitObject:
        """Returns an object, and checks that it is the one."""
        pack = next((pack for pack in self._packs if oid in pack), None)
        if pack is None:
            request = fetch_request(
                oid,
                self._algorithm,
                shallow=shallow and "shallow" in self._features,
                filtered="filter" in self._features,
            )
            body = await self._post(request)
            pack = await asyncio.to_thread(Pack, pack_of(body), self._algorithm, self._limits)
            self._packs.append(pack)
        if oid not in pack:
            if kind == "commit":
                raise GitProblem("GitCommitMissing", _NO_COMMIT)
            raise not_git()
        found = await asyncio.to_thread(pack.get, oid)
        if kind == "commit" and found.kind != "commit":
            raise GitProblem("GitCommitMissing", f"commit: it is the id of a {found.kind}; name a commit")
        if found.kind != kind or object_id(kind, found.content, self._algorithm) != oid:
            raise not_git()
        return found

    async def _advertised(self) -> Collection[str]:
        """Returns the features of `fetch`, after the first request, which redirects may follow."""
        url = f"{self._base}/info/refs?service={_SERVICE}"
        for _ in range(MOST_GIT_REDIRECTS + 1):
            async with self._http.get(url, headers=_PROTOCOL, allow_redirects=False) as response:
                if response.status in _REDIRECTS:
                    url = self._redirected(url, response.headers.get("Location", ""))
                    continue
                self._check(response, f"application/x-{_SERVICE}-advertisement")
                lines = [line.rstrip(b"\n") for line in packets(await self._body(response)) if line is not None]
            self._base = url.removesuffix(f"/info/refs?service={_SERVICE}")
            return self._capabilities(lines)
        raise GitProblem(
            "GitRedirected", f"url: the server redirects more than {MOST_GIT_REDIRECTS} times; check the URL"
        )

    def _redirected(self, url: str, location: str) -> str:
        try:
            place = Place.of(urljoin(url, location))
        except ValueError:
            place = None
        if place is None or place.url.count("?") != 1 or not place.url.endswith(f"/info/refs?service={_SERVICE}"):
            raise GitProblem(
                "GitRedirected", "url: the server redirects to a page; name the URL that `git clone` takes"
            )
        if (place.scheme, place.host, place.port) != ("https", self._place.host, self._place.port):
            raise GitProblem(
                "GitRedirected",
                f"url: the server redirects to another host, {place.host}; if it is to be trusted, name its URL",
            )
        return place.url

    def _capabilities(self, lines: list[bytes]) -> Collection[str]:
        if b"version 2" not in lines:
            text = "url: the server does not speak protocol 2 of Git (Git 2.18 and later do)"
            raise GitProblem("GitUnavailable", text)
        known = dict(line.decode(errors="replace").partition("=")[::2] for line in lines)
        if "fetch" not in known:
            raise not_git()
        if known.get("object-format", "sha1") != self._algorithm:
            text = f"commit: the repository names commits by {known.get('object-format', 'sha1')[:20]}; name a full id"
            raise GitProblem("GitCommitMissing", text)
        return known["fetch"].split()

    async def _post(self, request: bytes) -> bytes:
        self._requests += 1
        if self._requests > self._limits.requests:
            raise GitProblem("GitTooLarge", f"path: it is deeper than {self._limits.requests} folders; name another")
        headers = {
            **_PROTOCOL,
            "Content-Type": f"application/x-{_SERVICE}-request",
            "Accept": f"application/x-{_SERVICE}-result",
        }
        url = f"{self._base}/{_SERVICE}"
        async with self._http.post(url, data=request, headers=headers, allow_redirects=False) as response:
            if response.status in _REDIRECTS:
                raise GitProblem("GitRedirected", "url: the server redirects a request for data; name the final URL")
            self._check(response, f"application/x-{_SERVICE}-result")
            return await self._body(response)

    def _check(self, response: aiohttp.ClientResponse, content_type: str) -> None:
        if response.status in (401, 403, 404):
            text = "url: there is no public repository at this URL; check the URL, and who may read the repository"
            raise GitProblem("GitUnavailable", text)
        if response.status != 200:
            raise GitProblem("GitUnavailable", f"url: the server responded with status {response.status}")
        encoded = response.headers.get("Content-Encoding", "identity") != "identity"
        if response.content_type != content_type or encoded:
            raise not_git()

    async def _body(self, response: aiohttp.ClientResponse) -> bytes:
        found = bytearray()
        async for part in response.content.iter_any():
            found += part
            if len(found) > self._limits.pack_bytes:
                raise GitProblem(
                    "GitTooLarge",
                    f"url: the server sent more than {self._limits.pack_bytes:,} bytes; store the file in a smaller "
                    "repository, or on a server that supports partial clones (uploadpack.allowFilter)",
                )
        return bytes(found)
