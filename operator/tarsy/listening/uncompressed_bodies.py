"""Refuses bodies that would have to be unpacked, by their head alone.

Decision: nothing is unpacked anywhere, so 1 MiB is 1 MiB. The parser's own decompression is off as well (`server`);
without this refusal a packed body would reach a handler as bytes that it cannot read, and be called bad JSON.
"""

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler

PACKED = "send the body without Content-Encoding: compressed bodies are not supported"


@web.middleware
async def plain_bodies_only(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answers 415 where the head says that the body is packed."""
    if is_packed(request):
        raise web.HTTPUnsupportedMediaType(text=PACKED)
    return await handler(request)


def is_packed(request: web.BaseRequest) -> bool:
    """Whether the head names a coding of the body other than `identity`, or of its transfer other than `chunked`."""
    codings = _words(request, hdrs.CONTENT_ENCODING) - {"identity"}
    return bool(codings or _words(request, hdrs.TRANSFER_ENCODING) - {"chunked"})


def _words(request: web.BaseRequest, header: str) -> set[str]:
    values = ",".join(request.headers.getall(header, []))
    return {word.strip().lower() for word in values.split(",")} - {""}
