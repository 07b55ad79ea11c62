"""Serves the web UI: `/` and its assets, on the direct port.

Decision: the build (`make page`) is read into memory once, and files are served by exact name, so no request reaches
the file system. The files are public, as those of any program: all data comes from the API, which authorizes each
request.
"""

import gzip
import mimetypes
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from aiohttp import hdrs, web

FOLDER: Final = Path(__file__).with_name("page")
"""Output folder of Vite."""
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
    """A file of the web UI, plain and compressed."""

    content_type: str
    body: bytes
    compressed: bytes

    @classmethod
    def of(cls, path: Path) -> "PageFile":
        """Reads a file of the build."""
        body = path.read_bytes()
        kind = _TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "application/octet-stream"
        return cls(kind, body, gzip.compress(body, mtime=0))


def is_built(folder: Path = FOLDER) -> bool:
    """Returns whether the web UI is built."""
    return (folder / INDEX).is_file()


def read_page(folder: Path = FOLDER) -> dict[str, PageFile]:
    """Reads the build: `index.html` and the assets by name; empty if the web UI is not built.

    Args:
        folder: folder of the build.
    """
    if not is_built(folder):
        return {}
    assets = sorted(path for path in (folder / ASSETS).glob("*") if path.is_file())
    return {INDEX: PageFile.of(folder / INDEX)} | {path.name: PageFile.of(path) for path in assets}


def add_page(app: web.Application, files: Mapping[str, PageFile]) -> None:
    """Serves the web UI.

    Args:
        app: the application of the direct port.
        files: the files, from `read_page`.
    """

    async def page(request: web.Request) -> web.Response:
        if INDEX not in files:
            return web.Response(status=404, text=NOT_BUILT)
        return _response(request, files[INDEX], {"Cache-Control": "no-store", "Content-Security-Policy": _POLICY})

    async def asset(request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if name == INDEX or name not in files:
            raise web.HTTPNotFound  # asset names contain hashes: an old name belongs to an earlier build
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
