"""Refuses compressed bodies by their headers.

Decision: bodies are never decompressed, so a limit of 1 MiB means 1 MiB. The decompression of the parser is off as well
(`server`); without this refusal, a compressed body would reach a handler and be reported as invalid JSON.
"""

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler

PACKED = "send the body without Content-Encoding: compressed bodies are not supported"


@web.middleware
async def plain_bodies_only(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Responds with 415 to a compressed body."""
    if is_packed(request):
        raise web.HTTPUnsupportedMediaType(text=PACKED)
    return await handler(request)


def is_packed(request: web.BaseRequest) -> bool:
    """Returns whether a body has a content coding other than `identity`, or a transfer coding other than `chunked`."""
    codings = _words(request, hdrs.CONTENT_ENCODING) - {"identity"}
    return bool(codings or _words(request, hdrs.TRANSFER_ENCODING) - {"chunked"})


def _words(request: web.BaseRequest, header: str) -> set[str]:
    values = ",".join(request.headers.getall(header, []))
    return {word.strip().lower() for word in values.split(",")} - {""}
