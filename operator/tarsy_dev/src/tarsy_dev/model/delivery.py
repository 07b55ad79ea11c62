"""Sends an answer to the client with its pace and its faults.

The pace is a schedule, not a sum of sleeps: chunk n is due at start + first + n * per, so a busy machine does not
stretch a scripted answer beyond what it has to.
"""

import asyncio
from typing import NoReturn

from aiohttp import web

from tarsy_dev.model.journal import RequestOutcome, ServedRequest
from tarsy_dev.model.script import ErrorFault, Script, ScriptedFault
from tarsy_dev.model.wire import DONE, MALFORMED, WireAnswer, error_body, event

HANG_LIMIT = 3600.0


class _Ended(Exception):
    """A fault ended the answer; nothing more is sent."""


class _Pace:
    """When each chunk is due, in seconds of the loop's clock."""

    def __init__(self, answer: WireAnswer, script: Script) -> None:
        entry = answer.entry
        self._start = asyncio.get_running_loop().time()
        self._first = (script.first_token_ms if entry.first_token_ms is None else entry.first_token_ms) / 1000
        self._per = (script.per_token_ms if entry.per_token_ms is None else entry.per_token_ms) / 1000

    async def wait(self, number: int) -> None:
        """Waits until chunk `number` (from 0) is due."""
        due = self._start + self._first + number * self._per
        if (seconds := due - asyncio.get_running_loop().time()) > 0:
            await asyncio.sleep(seconds)


async def deliver(
    request: web.Request,
    answer: WireAnswer,
    served: ServedRequest,
    fault: ScriptedFault | None,
    *,
    script: Script,
    include_usage: bool,
) -> web.StreamResponse:
    """Sends the answer, or shows the fault; notes in `served` how it went."""
    if isinstance(fault, ErrorFault) and fault.after is None:
        served.outcome, served.status = RequestOutcome.ERROR, fault.status
        return _error_response(fault)
    if fault is not None and fault.after is None and fault is not answer.entry.malformed:
        if fault is answer.entry.hang:
            await _hang()
        served.outcome = RequestOutcome.CUT
        _close(request)
        return web.Response()
    pace = _Pace(answer, script)
    if not served.stream:
        return await _whole(request, answer, served, fault, pace)
    response = web.StreamResponse(
        headers={"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-cache"}
    )
    await pace.wait(0)
    await response.prepare(request)
    after = None if fault is None else fault.after or 0
    try:
        await response.write(answer.chunk({"role": "assistant", "content": ""}))
        for number, delta in enumerate(answer.deltas()):
            if number == after and fault is not None:
                await _show(fault, request, response, answer, served)
            await pace.wait(number)
            await response.write(answer.chunk(delta))
            served.chunks += 1
        if fault is not None and after is not None and after >= served.chunks:
            await _show(fault, request, response, answer, served)
        await response.write(answer.chunk({}, answer.finish_reason))
        if include_usage:
            await response.write(answer.usage_chunk(served.chunks))
        await response.write(DONE)
        if served.outcome is RequestOutcome.PENDING:
            served.outcome = RequestOutcome.FINISHED  # from here on the client may leave: it has everything
        await response.write_eof()
    except _Ended:
        return response
    finally:
        served.usage = answer.usage(served.chunks)
    return response


async def _whole(
    request: web.Request, answer: WireAnswer, served: ServedRequest, fault: ScriptedFault | None, pace: _Pace
) -> web.StreamResponse:
    """The answer in one piece; a fault in the middle of it becomes half a body."""
    pieces = sum(1 for _ in answer.deltas())
    await pace.wait(pieces)
    served.chunks, served.usage = pieces, answer.usage(pieces)
    body = answer.whole(pieces)
    if fault is None:
        served.outcome = RequestOutcome.FINISHED
        return web.json_response(body)
    if fault is answer.entry.malformed:
        served.outcome = RequestOutcome.MALFORMED
        return web.Response(text='{"id": "broken", "cho', content_type="application/json")
    response = web.StreamResponse(headers={"Content-Type": "application/json", "Content-Length": "1000000"})
    await response.prepare(request)
    await response.write(b'{"id": "half", "choices": [')
    if fault is answer.entry.hang:
        await _hang()
    served.outcome = RequestOutcome.CUT
    _close(request)
    return response


async def _show(
    fault: ScriptedFault, request: web.Request, response: web.StreamResponse, answer: WireAnswer, served: ServedRequest
) -> None:
    """Shows a fault in mid-stream. Raises _Ended: the stream is over (after a malformed chunk it goes on)."""
    if isinstance(fault, ErrorFault):
        served.outcome = RequestOutcome.ERROR
        await response.write(event(_error_data(fault)))
        await response.write_eof()
    elif fault is answer.entry.hang:
        await _hang()
    elif fault is answer.entry.cut:
        served.outcome = RequestOutcome.CUT
        _close(request)
    else:
        served.outcome = RequestOutcome.MALFORMED
        await response.write(MALFORMED)
        return
    raise _Ended


async def _hang() -> NoReturn:
    """Waits for the client to go away, which cancels this; the limit is for one that never does."""
    async with asyncio.timeout(HANG_LIMIT):
        await asyncio.get_running_loop().create_future()
    raise AssertionError("unreachable")


def _close(request: web.Request) -> None:
    """Ends the connection after what was written, without the end that the protocol wants."""
    if request.transport is not None:
        request.transport.close()


def _error_data(fault: ErrorFault) -> object:
    kind = (
        "rate_limit_error"
        if fault.status == 429
        else "server_error"
        if fault.status >= 500
        else "invalid_request_error"
    )
    return fault.body if fault.body is not None else error_body(fault.message, kind=kind, code=fault.code)


def _error_response(fault: ErrorFault) -> web.Response:
    data = _error_data(fault)
    if isinstance(data, str):
        return web.Response(text=data, status=fault.status, headers=fault.headers)
    return web.json_response(data, status=fault.status, headers=fault.headers)
