"""Tests that files of commits are read from a real Git server, and that what is wrong has a reason and a sentence."""

import asyncio
import os
from collections.abc import Sequence

import pytest
from aiohttp import web

from integration.git.host import GitHost, git
from tarsy.git.remote import read_git_file
from tarsy.git.source import GitFile, GitLimits, GitProblem
from tarsy.outbound.address_check import Found, Of
from tarsy.plan.destinations import Destinations

ANYWHERE = Of(Destinations())


async def read(host: GitHost, commit: str, path: str, url: str | None = None, limits: GitLimits | None = None) -> bytes:
    file = GitFile(url or host.url(), commit, path)
    return await read_git_file(file, ANYWHERE, tls=host.trust(), limits=limits or GitLimits())


async def problem(host: GitHost, commit: str, path: str, url: str | None = None, **limits: int) -> tuple[str, str]:
    with pytest.raises(GitProblem) as caught:
        await read(host, commit, path, url, GitLimits(**limits))  # type: ignore[arg-type]
    return caught.value.reason, caught.value.message


@pytest.mark.sweep("another server")
@pytest.mark.parametrize("filters", [True, False])
@pytest.mark.parametrize("form", ["sha1", "sha256"])
async def test_file_of_a_commit_is_read(host: GitHost, filters: bool, form: str) -> None:
    text = "\n".join(str(line) for line in range(3_000))
    first = host.repository({"a/b/case.jsonl": "old", "README": text}, filters=filters, form=form)
    second = host.repository({"a/b/case.jsonl": "new", "README": f"{text}\nmore", "a/c": text[:-9]}, form=form)
    assert await read(host, first, "a/b/case.jsonl") == b"old"
    assert await read(host, second, "a/b/case.jsonl") == b"new"
    assert await read(host, second, "a/c") == text[:-9].encode()
    assert len(second) == {"sha1": 40, "sha256": 64}[form]


async def test_little_is_asked_of_a_server_that_supports_partial_clones(host: GitHost) -> None:
    commit = host.repository({"a/case": "x", **{f"large/{number}": "y" * 10_000 for number in range(50)}})
    assert await read(host, commit, "a/case", limits=GitLimits(pack_bytes=4_096, objects=1)) == b"x"
    assert len([line for line in host.asked if line.startswith("POST")]) == 4  # commit, two trees, file


async def test_commit_that_no_branch_has_any_more_is_read(host: GitHost) -> None:
    commit = host.repository({"case": "x"})
    git(host.root / "cases.git", "update-ref", "-d", "refs/heads/main")
    assert await read(host, commit, "case") == b"x"


async def test_missing_commit_is_told(host: GitHost) -> None:
    host.repository({"case": "x"})
    reason, message = await problem(host, "1" * 40, "case")
    assert reason == "GitCommitMissing"
    assert "does not have the commit" in message


async def test_id_of_a_tree_is_no_commit(host: GitHost) -> None:
    commit = host.repository({"case": "x"})
    tree = git(host.root / "cases.git", "rev-parse", f"{commit}^{{tree}}").strip()
    assert (await problem(host, tree, "case"))[0] == "GitCommitMissing"


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("none", "none does not exist"),
        ("a/none/case", "a/none does not exist"),
        ("a", "a is a folder"),
        ("a/case/more", "a/case is no folder"),
        ("link", "link is a symbolic link"),
    ],
)
async def test_path_that_is_no_file_is_told(host: GitHost, path: str, why: str) -> None:
    host.repository({"a/case": "x"})
    (host.root / "work-cases.git" / "link").symlink_to("a/case")
    commit = host.repository({"more": "y"})
    reason, message = await problem(host, commit, path)
    assert reason == "GitPathMissing"
    assert why in message


async def test_missing_repository_is_told_without_the_words_of_the_server(host: GitHost) -> None:
    commit = host.repository({"case": "x"})
    reason, message = await problem(host, commit, "case", host.url("other.git"))
    assert reason == "GitUnavailable"
    assert "no public repository" in message


async def test_redirect_on_the_same_host_is_followed_and_to_another_is_not(host: GitHost) -> None:
    commit = host.repository({"case": "x"})
    service = "info/refs?service=git-upload-pack"

    async def lead(request: web.Request) -> web.StreamResponse:
        raise web.HTTPMovedPermanently(f"{host.url()}/{service}")

    async def elsewhere(request: web.Request) -> web.StreamResponse:
        raise web.HTTPFound(f"https://other.example:{host.port}/cases.git/{service}")

    async def to_a_page(request: web.Request) -> web.StreamResponse:
        raise web.HTTPFound("/login?next=/")

    async def without_tls(request: web.Request) -> web.StreamResponse:
        raise web.HTTPFound(f"http://localhost:{host.port}/cases.git/{service}")

    host.answers = {
        "/old/info/refs": lead,
        "/away/info/refs": elsewhere,
        "/page/info/refs": to_a_page,
        "/plain/info/refs": without_tls,
    }
    assert await read(host, commit, "case", host.url("old")) == b"x"
    for name in ("away", "page", "plain"):
        reason, message = await problem(host, commit, "case", host.url(name))
        assert reason == "GitRedirected", message
    assert "other.example" in (await problem(host, commit, "case", host.url("away")))[1]
    assert not [line for line in host.asked if "login" in line]


@pytest.mark.parametrize("filters", [True, False])
async def test_limits_hold(host: GitHost, filters: bool) -> None:
    commit = host.repository({"case": os.urandom(4_096), "b": "b", "c": "c"}, filters=filters)
    for limits in ({"pack_bytes": 600}, {"object_bytes": 900}, {"unpacked_bytes": 900}, {"requests": 0}):
        reason, message = await problem(host, commit, "case", **limits)
        assert reason == "GitTooLarge", (limits, message)
    if not filters:
        assert (await problem(host, commit, "b", objects=4))[0] == "GitTooLarge"
        assert await read(host, commit, "b", limits=GitLimits(objects=5)) == b"b"


async def test_file_has_a_largest_size(host: GitHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tarsy.git.remote.MAX_GIT_FILE_BYTES", 3)
    commit = host.repository({"three": "abc", "four": "abcd"})
    assert await read(host, commit, "three") == b"abc"
    assert (await problem(host, commit, "four"))[0] == "GitTooLarge"


async def test_server_that_sends_something_else_is_told(host: GitHost) -> None:
    commit = host.repository({"case": "x"})
    advertised = "application/x-git-upload-pack-advertisement"

    def fixed(body: bytes, content_type: str) -> object:
        async def answer(request: web.Request) -> web.StreamResponse:
            return web.Response(body=body, content_type=content_type)

        return answer

    bodies: Sequence[tuple[bytes, str]] = [
        (b"<html>", "text/html"),
        (b"<html>", advertised),
        (b"", advertised),
        (b"zzzz", advertised),
        (b"ffff", advertised),
        (b"000eversion 1\n0000", advertised),
    ]
    for body, content_type in bodies:
        host.answers["/odd/info/refs"] = fixed(body, content_type)  # type: ignore[assignment]
        assert (await problem(host, commit, "case", host.url("odd")))[0] == "GitUnavailable", body


async def test_replaced_content_is_found_by_its_hash(host: GitHost) -> None:
    commit = host.repository({"case": "x"})
    other = host.repository({"case": "y"}, "other.git")

    async def forged(request: web.Request) -> web.StreamResponse:
        body = (await request.read()).replace(commit.encode(), other.encode())
        return await host.served(request, "/other.git/git-upload-pack", body)

    host.answers["/cases.git/git-upload-pack"] = forged
    assert (await problem(host, commit, "case"))[0] == "GitCommitMissing"


@pytest.mark.parametrize(
    "url", ["http://localhost/x.git", "https://user@localhost/x.git", "https://h/x?y", "ssh://h/x"]
)
async def test_only_plain_https_urls_are_read(host: GitHost, url: str) -> None:
    assert (await problem(host, "1" * 40, "case", url))[0] == "GitHostNotAllowed"


@pytest.mark.parametrize("commit", ["main", "1" * 39, "1" * 41, "G" * 40, ""])
async def test_commit_must_be_a_full_id(host: GitHost, commit: str) -> None:
    assert (await problem(host, commit, "case"))[0] == "GitCommitMissing"


@pytest.mark.parametrize("path", ["/case", "a/../case", "./case", "a//b", "", "a/"])
async def test_path_must_be_below_the_root(host: GitHost, path: str) -> None:
    assert (await problem(host, "1" * 40, path))[0] == "GitPathMissing"


async def test_address_is_judged_where_the_connection_is_made(host: GitHost) -> None:
    in_pod = Of(Destinations(in_pod=True))

    async def rebound(name: str, port: int) -> Found:
        return Found(("169.254.169.254",), name)

    file = GitFile("https://git.example.com/cases.git", "1" * 40, "case")
    for judge in (in_pod, ANYWHERE):
        with pytest.raises(GitProblem) as caught:
            await read_git_file(file, judge, look_up=rebound)
        assert caught.value.reason == "GitHostNotAllowed"
    with pytest.raises(GitProblem) as caught:
        await read_git_file(
            GitFile(f"https://127.0.0.1:{host.port}/cases.git", "1" * 40, "case"), in_pod, tls=host.trust()
        )
    assert caught.value.reason == "GitHostNotAllowed"
    assert host.asked == []


async def test_certificate_must_be_trusted(host: GitHost) -> None:
    commit = host.repository({"case": "x"})
    with pytest.raises(GitProblem) as caught:
        await read_git_file(GitFile(host.url(), commit, "case"), ANYWHERE)
    assert "--git-ca-file" in caught.value.message


async def test_silent_server_takes_no_longer_than_the_limit(host: GitHost) -> None:
    async def silent(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(
            headers={"Content-Type": "application/x-git-upload-pack-advertisement", "Content-Length": "10"}
        )
        await response.prepare(request)
        await response.write(b"000")
        await closing.wait()
        return response

    closing = asyncio.Event()
    host.answers["/cases.git/info/refs"] = silent
    reason, message = await problem(host, "1" * 40, "case", seconds=1)
    closing.set()
    assert (reason, "1 s" in message) == ("GitUnavailable", True)
