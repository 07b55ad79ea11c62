"""Reads files from Git by the fetcher (`tarsy.git`), which runs apart from this process.

Decision: this process never reads what a Git server sends. In a cluster it calls the fetcher that is a workload of its
own; on one machine, where tool servers may run as commands, it starts the fetcher as a child process for each file, as
it starts those (`tarsy.mcp.connection`): no environment but PATH, an empty HOME.
"""

import asyncio
import base64
import binascii
import sys
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from pathlib import Path
from uuid import uuid4

import mcp_types as types
from pydantic import ValidationError

from tarsy.git.fetcher import GIT_TOOL, GitAnswer
from tarsy.git.source import MAX_GIT_FILE_BYTES, GitFile, GitProblem
from tarsy.mcp.connection import Policy
from tarsy.mcp.errors import McpError
from tarsy.mcp.session import McpSession
from tarsy.plan.model import HttpTransport, ObjectRef, ServerPlan, StdioTransport
from tarsy.plan.workload import service_address

FETCHER = "git-fetcher"
"""Name of the fetcher's Service in the namespace of the operator."""

START_SECONDS = 30.0
CALL_SECONDS = 90.0
"""Longer than a read may take in the fetcher."""

ReadGitFile = Callable[[GitFile], Awaitable[bytes]]
"""Reads a file; raises GitProblem."""


class FetcherClient:
    """Calls the fetcher (`ReadGitFile`).

    Args:
        policy: permissions and dependencies of connections to tool servers.
        server: the fetcher.
        ca_file: certificate authorities of Git servers, beside the system's; None: none.
    """

    def __init__(self, policy: Policy, server: ServerPlan, ca_file: Path | None = None) -> None:
        self._policy = policy
        self._ca_file = ca_file
        self._server = server

    async def __call__(self, file: GitFile) -> bytes:
        """Returns the content of a file.

        Raises:
            GitProblem: it cannot be read, or the fetcher cannot be reached.
        """
        arguments = {"url": file.url, "commit": file.commit, "path": file.path}
        if self._ca_file is not None:
            arguments["ca"] = await asyncio.to_thread(_read_ca, self._ca_file)
        async with aclosing(_Session(self._server, self._policy)) as session:
            try:
                result = await session.call(arguments)
            except McpError as error:
                raise GitProblem("GitUnavailable", f"url: {self._away()}: {error.ours}") from error
            except TimeoutError:
                raise GitProblem(
                    "GitUnavailable", f"url: the fetcher did not answer within {CALL_SECONDS:g} s"
                ) from None
        return _content(result)

    def _away(self) -> str:
        if isinstance(self._server.transport, StdioTransport):
            return "the fetcher could not be started"
        return f"the fetcher does not answer; apply the component `{FETCHER}`"


class _Session:
    """One session with the fetcher, for one call."""

    def __init__(self, server: ServerPlan, policy: Policy) -> None:
        self._session = McpSession(server, policy)

    async def call(self, arguments: dict[str, str]) -> types.CallToolResult:
        await self._session.started(START_SECONDS)
        async with asyncio.timeout(CALL_SECONDS):
            return await self._session.call(GIT_TOOL, dict(arguments), idempotency_key=uuid4().hex)

    async def aclose(self) -> None:
        await self._session.close()


def fetcher_plan(namespace: str, *, child: bool) -> ServerPlan:
    """Returns how the fetcher is reached.

    Args:
        namespace: of the operator.
        child: whether it is a child process instead of a workload of the cluster.
    """
    ref = ObjectRef(kind="MCPServer", namespace=namespace, name=FETCHER, uid="", generation=0)
    transport: StdioTransport | HttpTransport
    if child:
        transport = StdioTransport(command=sys.executable, args=("-m", "tarsy.git"))
    else:
        transport = HttpTransport(url=f"{service_address(FETCHER, namespace)}/mcp")
    return ServerPlan(ref=ref, name=FETCHER, transport=transport, init_seconds=START_SECONDS)


def _content(result: types.CallToolResult) -> bytes:
    """Returns the content in an answer; what is not understood is an error of the fetcher."""
    text = "".join(part.text for part in result.content if isinstance(part, types.TextContent))
    try:
        if result.is_error:
            raise ValueError(text)
        answer = GitAnswer.model_validate_json(text)
        if answer.reason is not None:
            raise GitProblem(answer.reason, answer.message)
        content = base64.b64decode(answer.content or "", validate=True)
    except (ValidationError, ValueError, binascii.Error):
        raise GitProblem("GitUnavailable", "url: the fetcher's answer cannot be read; see its log") from None
    if len(content) > MAX_GIT_FILE_BYTES:
        raise GitProblem("GitTooLarge", f"path: the file has more than {MAX_GIT_FILE_BYTES:,} bytes")
    return content


def _read_ca(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise GitProblem(
            "GitUnavailable", f"url: the file of --git-ca-file cannot be read ({type(error).__name__})"
        ) from None
