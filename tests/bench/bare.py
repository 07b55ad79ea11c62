"""Runs `sdk_loop.py`, the bare loop, against a tenant's model and tools."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.bed import Tenant
from tests.bench.children import found_by

SDK_LOOP = Path(__file__).with_name("sdk_loop.py")


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
    """Runs so many loops in a fresh process, `at_once` of them side by side; `style` as in `sdk_loop`.

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
            }
        )
    )
    return Bare(**await found_by(SDK_LOOP, str(path)))
