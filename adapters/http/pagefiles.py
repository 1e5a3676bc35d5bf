"""The files of a page that the gateway serves, out of its package, with the headers that every page of ours has."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from aiohttp import web

from adapters.http.common import Problem, problem_response

TYPES = {
    "html": "text/html",
    "css": "text/css",
    "js": "text/javascript",
    "svg": "image/svg+xml",
    "webmanifest": "application/manifest+json",
}
WORKER = "worker.js"
"""What keeps the files of a page that is installed; it looks after the whole address."""
SECURITY = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; media-src blob:; connect-src 'self'; "
    "manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
"""A page loads nothing from elsewhere, runs no script but its own files, and is in no frame. It shows pictures and sounds that it has fetched itself, with its key."""


class PageFiles:
    """The named files of one folder; nothing else can be asked for."""

    def __init__(self, package: str, names: frozenset[str]) -> None:
        self._package = package
        self._names = names

    async def page(self, _: web.Request) -> web.StreamResponse:
        """Answers with the page itself."""
        return self._response("index.html")

    async def named(self, request: web.Request) -> web.StreamResponse:
        """Answers with the file that the path's ``name`` stands for."""
        return self._response(request.match_info["name"])

    def _response(self, name: str) -> web.Response:
        if name not in self._names:
            return problem_response(Problem(404, "There is no such file.", code="unknown_url"))
        headers = {**SECURITY, "Cache-Control": "no-cache"}
        if name == WORKER:
            headers["Service-Worker-Allowed"] = "/"
        kind = TYPES[name.rpartition(".")[2]]
        return web.Response(body=_read(self._package, name), content_type=kind, charset="utf-8", headers=headers)


@cache
def _read(package: str, name: str) -> bytes:
    return files(package).joinpath(name).read_bytes()
