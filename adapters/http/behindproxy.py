"""Whom a reverse proxy says a request is from. It is believed of the proxies alone that the configuration trusts, by the address of the connection itself.

Laws (tests/gateway/test_behind_proxy.py): without a configured header, or from any other address, nobody is anybody by a header; a trusted proxy that
names nobody, several people or what cannot be a name lets nobody in.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

from aiohttp import web

from adapters.contract.callers import USER_CHARS
from adapters.http.common import NAMED, through_proxy
from adapters.http.entrance import is_among
from agent_core.records import dataclass

NOBODY = ""


@dataclass(frozen=True, slots=True)
class BehindProxy:
    """What the configuration says; no `header`: nothing is believed."""

    header: str = ""
    trusted: Sequence[ipaddress.IPv4Network | ipaddress.IPv6Network] = ()

    def note(self, request: web.Request, peer: str) -> None:
        """Set in a request whom it is from, if one of the proxies brought it."""
        if not self.header or not is_among(peer, self.trusted):
            return
        said = [one.strip() for one in request.headers.getall(self.header, [])]
        if not said and not through_proxy(request):
            return  # a program on the proxy's machine
        (name,) = said if len(said) == 1 else (NOBODY,)
        request[NAMED] = name if len(name) <= USER_CHARS and name.isprintable() else NOBODY
