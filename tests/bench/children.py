"""Child processes of benchmarks: when one listens, and what one has found."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

START_SECONDS = 60.0


async def listening(port: int) -> None:
    """Waits until somebody listens on a port of this machine.

    Raises TimeoutError: nobody does after a minute.
    """
    async with asyncio.timeout(START_SECONDS):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.05)
                continue
            writer.close()
            return


async def found_by(script: Path, *arguments: str) -> dict[str, Any]:
    """What a script of Python, run in a fresh process, prints as JSON.

    Raises RuntimeError: the process failed.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(script), *arguments, stdout=asyncio.subprocess.PIPE
    )
    try:
        output, _ = await process.communicate()
    except BaseException:
        process.kill()
        await process.wait()
        raise
    if process.returncode:
        raise RuntimeError(f"{script.name} {' '.join(arguments)} ended with {process.returncode}")
    found: dict[str, Any] = json.loads(output)
    return found
