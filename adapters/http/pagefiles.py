"""The files of a page that the gateway serves, out of its package, with the headers that every page of ours has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from typing import TypeAlias

from aiohttp import web

from adapters.http.common import Problem, problem_response
from agent_core.text.tongue import ENGLISH

TYPES = {
    "html": "text/html",
    "css": "text/css",
    "js": "text/javascript",
    "svg": "image/svg+xml",
    "webmanifest": "application/manifest+json",
}
INDEX = "index.html"
WORKER = "worker.js"
"""What keeps the files of a page that is installed; it looks after the whole address."""
SECURITY = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; media-src blob:; connect-src 'self'; "
    "manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
"""A page loads nothing from elsewhere, runs no script but its own files, and is in no frame. It shows pictures and sounds that it has fetched itself, with its key."""

Spoken: TypeAlias = Callable[[str, str], str]
"""Gives a file's text in a language."""


class PageFiles:
    """The named files of one folder; nothing else can be asked for."""

    def __init__(self, package: str, names: frozenset[str], spoken: Mapping[str, Spoken] | None = None) -> None:
        """`spoken`: the files that are given in a language, by their names."""
        self._package = package
        self._names = names
        self._spoken = spoken or {}

    async def page(self, _: web.Request) -> web.StreamResponse:
        """Answers with the page itself."""
        return self.response(INDEX)

    async def named(self, request: web.Request) -> web.StreamResponse:
        """Answers with the file that the path's ``name`` stands for."""
        return self.response(request.match_info["name"])

    def response(self, name: str, language: str = "") -> web.StreamResponse:
        """A file, in this language if it is given in several (empty: English)."""
        if name not in self._names:
            return problem_response(Problem(404, "There is no such file.", code="unknown_url"))
        headers = {**SECURITY, "Cache-Control": "no-cache"}
        if name == WORKER:
            headers["Service-Worker-Allowed"] = "/"
        body = _read(self._package, name)
        if (spoken := self._spoken.get(name)) is not None:
            headers |= {"Vary": "Accept-Language", "Content-Language": language or ENGLISH}
            body = spoken(body.decode(), language).encode()
        kind = TYPES[name.rpartition(".")[2]]
        return web.Response(body=body, content_type=kind, charset="utf-8", headers=headers)


@cache
def _read(package: str, name: str) -> bytes:
    return files(package).joinpath(name).read_bytes()
