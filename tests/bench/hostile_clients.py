"""Hostile clients of one address: `python hostile_clients.py HOST PORT NAMESPACE COUNT`; ends with its standard input.

A quarter each sends a head that does not end, a body that does not come behind something like a signature, a packed
body that is a thousand times as large as it looks, and a body of 1 MiB with a token that nobody knows. Who is cut off
comes again after a pause. What they were answered is printed at the end, as JSON.
"""

import asyncio
import gzip
import json
import secrets
import sys
from collections import Counter
from functools import cache

PAUSE_SECONDS = 5.0
DRIP_SECONDS = 2.0
PATIENCE_SECONDS = 60.0
MIB = 1_048_576


@cache
def bomb() -> bytes:
    """About 900 KB that unpack to 900 MB."""
    return gzip.compress(bytes(900 * MIB), compresslevel=1)[: MIB - 1]


def head(namespace: str, size: int, *headers: str) -> bytes:
    """Of a notification."""
    lines = [f"POST /intake/v1/json?namespace={namespace} HTTP/1.1", "Host: tarsy", f"Content-Length: {size}", *headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


async def attack(number: int, namespace: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> str:
    """One connection's life; what it was answered."""
    match number % 4:
        case 0:
            first, endless = b"POST /intake/v1/json HTTP/1.1\r\nX-Filler: ", True
        case 1:
            first, endless = head(namespace, 1000, f"X-Hub-Signature-256: {secrets.token_hex(32)}"), True
        case 2:
            first, endless = head(namespace, len(bomb()), "Content-Encoding: gzip") + bomb(), False
        case _:
            first = head(namespace, MIB, f"Authorization: Bearer {secrets.token_hex(32)}") + bytes(MIB)
            endless = False
    writer.write(first)
    drip = asyncio.create_task(_drip(writer)) if endless else None
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            line = await reader.readline()
        return line.decode("latin-1").split(" ")[1] if line.startswith(b"HTTP/") else "cut off"
    finally:
        if drip is not None:
            drip.cancel()
            await asyncio.gather(drip, return_exceptions=True)


async def _drip(writer: asyncio.StreamWriter) -> None:
    while True:
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(DRIP_SECONDS)


async def client(number: int, host: str, port: int, namespace: str, answers: Counter[str]) -> None:
    """Comes again and again."""
    await asyncio.sleep(PAUSE_SECONDS * number / 1000)
    while True:
        try:
            reader, writer = await asyncio.open_connection(host, port)
        except OSError:
            answers["refused"] += 1
        else:
            try:
                answers[await attack(number, namespace, reader, writer)] += 1
            except TimeoutError:
                answers["nothing"] += 1
            except ConnectionError:
                answers["cut off"] += 1
            finally:
                writer.transport.abort()
        await asyncio.sleep(PAUSE_SECONDS)


async def main(host: str, port: str, namespace: str, count: str) -> None:
    """Runs until standard input ends."""
    bomb()
    answers: Counter[str] = Counter()
    tasks = [asyncio.create_task(client(n, host, int(port), namespace, answers)) for n in range(int(count))]
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    print(json.dumps(answers))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
