"""The page that people watch: `/` and its assets, beside the routes of the direct door.

Decision: what the build left (`make page`) is read once, into memory, and only what is there by name is served; there
is no path from a request to the file system. The page itself is for everybody, as a program is: whatever it shows comes
from the API, which asks who may see it.
"""

import gzip
import mimetypes
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from aiohttp import hdrs, web

FOLDER: Final = Path(__file__).with_name("page")
"""Where Vite leaves the page."""
INDEX = "index.html"
ASSETS = "assets"
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
NOT_BUILT = "The web UI is not built; run `make page` (requires node). The API is at /api/v1.\n"
_FOREVER = "public, max-age=31536000, immutable"
_TYPES: Mapping[str, str] = {
    ".js": "text/javascript",
    ".css": "text/css",
    ".html": "text/html",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True, slots=True)
class PageFile:
    """A file of the page, as it is and compressed."""

    content_type: str
    body: bytes
    compressed: bytes

    @classmethod
    def of(cls, path: Path) -> "PageFile":
        """A file of the build."""
        body = path.read_bytes()
        kind = _TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "application/octet-stream"
        return cls(kind, body, gzip.compress(body, mtime=0))


def is_built(folder: Path = FOLDER) -> bool:
    """Whether there is a page to serve."""
    return (folder / INDEX).is_file()


def read_page(folder: Path = FOLDER) -> dict[str, PageFile]:
    """What is served, by name: the page itself as `index.html`, its assets by their own; empty where it is not built.

    Args:
        folder: where the build is.
    """
    if not is_built(folder):
        return {}
    assets = sorted(path for path in (folder / ASSETS).glob("*") if path.is_file())
    return {INDEX: PageFile.of(folder / INDEX)} | {path.name: PageFile.of(path) for path in assets}


def add_page(app: web.Application, files: Mapping[str, PageFile]) -> None:
    """Serves the page.

    Args:
        app: of the direct door.
        files: as `read_page` found them.
    """

    async def page(request: web.Request) -> web.Response:
        if INDEX not in files:
            return web.Response(status=404, text=NOT_BUILT)
        return _response(request, files[INDEX], {"Cache-Control": "no-store", "Content-Security-Policy": _POLICY})

    async def asset(request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if name == INDEX or name not in files:
            raise web.HTTPNotFound  # the names are hashes: an old one is of a page that was replaced
        return _response(request, files[name], {"Cache-Control": _FOREVER})

    app.router.add_get("/", page)
    app.router.add_get("/page/assets/{name}", asset)


def _response(request: web.Request, file: PageFile, headers: Mapping[str, str]) -> web.Response:
    packed = "gzip" in request.headers.get(hdrs.ACCEPT_ENCODING, "")
    encoding = {"Content-Encoding": "gzip"} if packed else {}
    return web.Response(
        body=file.compressed if packed else file.body,
        content_type=file.content_type,
        charset="utf-8",
        headers={**headers, **encoding, "Vary": "Accept-Encoding"},
    )
