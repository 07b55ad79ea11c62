"""Runs the benchmarks one after the other: `python -m tests.bench [NAME ...] [--quick] [--out FILE]`.

`python -m tests.bench compare OLD NEW` compares the figures of two such files.
"""

import argparse
import asyncio
import json
import os
import platform
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console

sys.path.insert(0, str(Path(__file__).parents[1]))  # tests import each other from there, as under pytest

from tests.bench import (
    api_writes,
    at_once,
    claim,
    compare,
    conversation,
    cpu_per_call,
    engine,
    evals,
    evidence,
    first_request,
    floor,
    history,
    hostile,
    incidents,
    kopf_share,
    kubernetes_api,
    lists,
    live,
    masking,
    mcp_sessions,
    page,
    precedents,
    providers,
    rows_and_bytes,
    scale,
    statements,
    workers,
)
from tests.bench.bed import Bed, running_bed
from tests.bench.figures import Result, show

BENCHMARKS: dict[str, Callable[[Bed, bool], Awaitable[Result]]] = {
    "apply_to_first_request": first_request.run,
    "floor": floor.run,
    "cpu_per_call": cpu_per_call.run,
    "hundred_at_once": at_once.run,
    "api_writes": api_writes.run,
    "rows_and_bytes": rows_and_bytes.run,
    "hostile": hostile.run,
    "workers": workers.run,
}
ALONE: dict[str, Callable[[bool], Awaitable[Result]]] = {
    "kubernetes_api": kubernetes_api.run,
    "kopf_share": kopf_share.run,
    "claim": claim.run,
    "statements": statements.run,
    "providers": providers.run,
    "engine": engine.run,
    "conversation": conversation.run,
    "evals": evals.run,
    "masking": masking.run,
    "mcp": mcp_sessions.run,
    "scale": scale.run,
    "live": live.run,
    "lists": lists.run,
    "precedents": precedents.run,
    "page": page.run,
    "incidents": incidents.run,
    "evidence": evidence.run,
    "history": history.run,
}
"""Those that need no operator, and are run before there is one."""


def main() -> int:
    """Ends 0 when all benchmarks could be run, whatever they found."""
    if sys.argv[1:2] == ["compare"]:
        return compare.main(sys.argv[2:])
    known = [*ALONE, *BENCHMARKS]
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(known)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: shows that it runs, the figures mean little")
    parser.add_argument("--out", type=Path, help="write the figures there, as JSON")
    options = parser.parse_args()
    if unknown := [name for name in options.names if name not in known]:
        parser.error(f"no such benchmark: {', '.join(unknown)}")
    return asyncio.run(_run(options.names or known, options.quick, options.out))


async def _run(names: Sequence[str], quick: bool, out: Path | None) -> int:
    console = Console(width=None if sys.stdout.isatty() else 120)
    results: dict[str, Any] = {}
    machine = _machine()
    report = {"machine": machine, "quick": quick, "benchmarks": results}

    async def one(name: str, work: Awaitable[Result], log: Path | None = None) -> bool:
        machine[f"load before {name}"] = os.getloadavg()[0]
        try:
            result = await work
        except Exception as error:  # the others are run all the same
            console.print(f"{name} could not be run: {error!r}\n{_tail(log) if log else ''}", markup=False)
            results[name] = {"error": repr(error)}
        else:
            show(console, name, result)
            results[name] = asdict(result)
        if out:
            _write(out, report)
        return "error" not in results[name]

    done = [await one(name, ALONE[name](quick)) for name in names if name in ALONE]
    if rest := [name for name in names if name in BENCHMARKS]:
        async with running_bed() as bed:
            done += [await one(name, BENCHMARKS[name](bed, quick), bed.stack.operator_log) for name in rest]
    return 0 if all(done) else 1


def _write(out: Path, report: dict[str, Any]) -> None:
    out.write_text(json.dumps(report, indent=1) + "\n")


def _machine() -> dict[str, Any]:
    return {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpus": os.cpu_count(),
        "python": platform.python_version(),
        "system": platform.platform(),
    }


def _tail(log: Path, lines: int = 15) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:]) if log.exists() else ""


if __name__ == "__main__":
    sys.exit(main())
