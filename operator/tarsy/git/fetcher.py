"""Serves the one tool of the fetcher: a file of a commit, or the reason why there is none."""

import asyncio
import base64
import ssl
from typing import Annotated, Final

from mcp.server import MCPServer
from mcp_types import ToolAnnotations
from pydantic import BaseModel, Field

from tarsy.git.remote import read_git_file
from tarsy.git.source import GitFile, GitProblem, GitReason
from tarsy.outbound.address_check import Of
from tarsy.plan.destinations import Destinations

GIT_TOOL: Final = "read_file"
"""Name of the tool."""

_AT_ONCE = 2


class GitAnswer(BaseModel):
    """Content in base64, or reason and message of what is wrong."""

    content: str | None = None
    reason: GitReason | None = None
    message: str = ""


def git_server(destinations: Destinations) -> MCPServer:
    """Creates the tool server.

    Args:
        destinations: where URLs may lead.
    """
    server = MCPServer("git", instructions="Reads a file of a commit of a public repository.", log_level="WARNING")
    places = asyncio.Semaphore(_AT_ONCE)

    @server.tool(
        name=GIT_TOOL, annotations=ToolAnnotations(read_only_hint=True, idempotent_hint=True), structured_output=False
    )
    async def read_file(
        url: Annotated[str, Field(description="URL of the repository.", max_length=2048)],
        commit: Annotated[str, Field(description="Full id of the commit.", max_length=64)],
        path: Annotated[str, Field(description="Path of the file from the root.", max_length=1024)],
        ca: Annotated[str, Field(description="Certificate authorities in PEM form. Beside the system's.")] = "",
    ) -> str:
        """Reads a file of a commit."""
        async with places:
            try:
                tls = ssl.create_default_context()
                if ca:
                    tls.load_verify_locations(cadata=ca)
                content = await read_git_file(GitFile(url, commit, path), Of(destinations), tls=tls)
            except GitProblem as problem:
                return GitAnswer(reason=problem.reason, message=problem.message).model_dump_json()
            except (ssl.SSLError, ValueError):
                text = "url: the file of --git-ca-file holds no usable PEM certificates; check it"
                return GitAnswer(reason="GitUnavailable", message=text).model_dump_json()
        return GitAnswer(content=base64.b64encode(content).decode()).model_dump_json()

    return server
