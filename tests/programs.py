"""Programs that tests start."""

import asyncio


async def end(process: asyncio.subprocess.Process, seconds: float) -> None:
    """Asks a program to end where it runs, and kills it when it has not after so many seconds."""
    if process.returncode is None:
        process.terminate()
        try:
            await asyncio.wait_for(process.wait(), seconds)
        except TimeoutError:
            process.kill()
            await process.wait()
