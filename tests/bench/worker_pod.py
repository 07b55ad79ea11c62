"""A worker pod beside the operator of a benchmark."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from tests.bench.bed import RUN_SECONDS, Bed

from tarsy_dev.operator_process import OperatorProcess

_WATCH_SECONDS = 0.05
_WORKERS = "SELECT count(*) FROM worker WHERE expires_at > now()"


@contextlib.asynccontextmanager
async def worker_pod(bed: Bed, places: int, processes: int = 1) -> AsyncIterator[OperatorProcess]:
    """Runs a worker pod, entered when all its processes are registered.

    Args:
        bed: the stack.
        places: runs that the pod holds at a time.
        processes: of the pod.
    """
    limits = ["--places", str(places), "--global-limit", "1000", "--processes", str(processes)]
    fixed = ["--kubeconfig", str(bed.stack.kubeconfig), "--health-port", "0", "--drain-seconds", "0"]
    environment = {"TARSY_DATABASE_URL": bed.stack.database_url}
    before = await bed.pool.fetchval(_WORKERS)
    process = OperatorProcess([*fixed, *limits], environment, bed.stack.operator_log, command="worker")
    try:
        async with asyncio.timeout(RUN_SECONDS):
            while await bed.pool.fetchval(_WORKERS) < before + processes:  # noqa: ASYNC110 (other processes)
                await asyncio.sleep(_WATCH_SECONDS)
        yield process
    finally:
        await process.stop()
