"""Runs the bare loops, `sdk_loop.py` and `bare_loop.py`, against a tenant's model and tools."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.bed import Tenant
from tests.bench.children import found_by

SDK_LOOP = Path(__file__).with_name("sdk_loop.py")
BARE_LOOP = Path(__file__).with_name("bare_loop.py")
FLOOR = "floor"


@dataclass(frozen=True, slots=True)
class Bare:
    """What the loops cost: CPU seconds of the process, and wall time."""

    calls: int
    cpu_seconds: float
    wall_seconds: float


async def conversation(tenant: Tenant) -> list[dict[str, Any]]:
    """The messages of the operator's own first request since the journal was emptied."""
    first = (await tenant.asked())[0]["messages"]
    return [{"role": message["role"], "content": message["content"]} for message in first]


async def run_bare(
    tenant: Tenant, messages: list[dict[str, Any]], *, loops: int, at_once: int = 1, style: str = "lean"
) -> Bare:
    """Runs bare loops in a fresh process.

    Args:
        tenant: whose model and tool server are asked.
        messages: of each loop's first request.
        loops: how many, a multiple of `at_once`.
        at_once: how many side by side.
        style: `plain` or `lean` of `sdk_loop`, which records nothing; or `FLOOR`: `bare_loop`, which records all.

    Raises RuntimeError: the process failed.
    """
    folder = tenant.bed.stack.folder
    path = folder / "sdk_loop.json"
    path.write_text(
        json.dumps(
            {
                "base_url": tenant.base_url,
                "tools_url": tenant.tools_url,
                "messages": messages,
                "loops": loops,
                "at_once": at_once,
                "style": style,
                "database_url": tenant.bed.stack.database_url,
            }
        )
    )
    return Bare(**await found_by(BARE_LOOP if style == FLOOR else SDK_LOOP, str(path)))
