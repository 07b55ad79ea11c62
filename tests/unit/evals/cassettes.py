"""Builds cassettes for tests."""

from datetime import UTC, datetime
from typing import Any

from tarsy.evals.cassette import AlertRecord, Cassette, Header, RecordedCall, ServerRecord, ToolRecord
from tarsy.record.messages import Access

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
LIMITED = {"type": "object", "properties": {"limit": {"type": "integer", "default": 50}}}
TOOLS = ("pods_list", "pods_get", "logs")


def call(tool: str, result: str, server: str = "k", **arguments: Any) -> RecordedCall:
    return RecordedCall(server=server, tool=tool, arguments=arguments, result=result)


def cassette(*calls: RecordedCall) -> Cassette:
    tools = tuple(ToolRecord(name=name, parameters_schema=LIMITED, access=Access.READ_ONLY) for name in TOOLS)
    scale = ToolRecord(name="scale", access=Access.CHANGES)
    header = Header(
        alert=AlertRecord(type="Down", data="checkout is down"),
        now=NOW,
        servers={"k": ServerRecord(tools=(*tools, scale)), "bare": ServerRecord()},
    )
    return Cassette(header, calls)
