"""Limits the bytes of responses that are read, where objects of others decide how large they are."""

from dataclasses import dataclass

import aiohttp


class ResponseTooLarge(Exception):
    """A response is larger than the room that is left for it."""


@dataclass(slots=True)
class ResponseRoom:
    """Bytes that the responses to several requests may have together."""

    left: int

    async def read(self, answer: aiohttp.ClientResponse) -> bytes:
        """Reads a response, and no more of it than there is room for.

        Raises:
            ResponseTooLarge: there is not enough room; the connection is closed.
        """
        content = bytearray()
        async for piece in answer.content.iter_any():
            self.left -= len(piece)
            if self.left < 0:
                answer.close()
                raise ResponseTooLarge
            content += piece
        return bytes(content)
