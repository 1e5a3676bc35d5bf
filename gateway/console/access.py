"""Who may see the console: whoever has the operators' key; where there is none, whoever sits at this machine.

"At this machine" must not be had by pretence. A proxy on the same machine calls from loopback for people who are elsewhere, so
nobody is taken to be here who comes through one; a web page must not reach the console through a browser that runs here, by its
own address or by a name that was made to point here. What is left are the names of loopback themselves.
"""

from __future__ import annotations

import ipaddress

from aiohttp import web

from adapters.http.common import Problem, host_of, stranger, through_proxy
from adapters.http.routes import HttpRoute, Tag
from agent_core.records import dataclass

CONSOLE_ROUTES = tuple(route for route in HttpRoute if route.tag is Tag.CONSOLE)
LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "::1"})
HERE = "on this machine"
WITH_KEY = "with the key"


@dataclass(frozen=True, slots=True)
class Access:
    """What the configuration says."""

    key: str | None
    behind_proxy: bool
    """``[server] public_url`` is set: what comes from loopback may come from anywhere."""

    def refusal(self, request: web.Request) -> Problem | None:
        """Why a request is not served, or None. Where there is a key, everybody has to send it: a plain proxy looks like this machine."""
        if self.key is None and not self.at_this_machine(request):
            return Problem(
                403,
                "The console is served to this machine only, because no key is set, and this request came through a proxy or "
                "from elsewhere. Set [server] operator_key, and the console asks for it.",
            )
        return _other_site(request) or stranger(request, self.key, ())

    def at_this_machine(self, request: web.Request) -> bool:
        """Whoever asks sits at this machine, for all that can be known."""
        if self.behind_proxy or through_proxy(request):
            return False
        return _loopback(request.remote) and host_of(request.host) in LOOPBACK_NAMES

    def who(self, request: web.Request) -> str:
        """How somebody came in, for the audit."""
        if self.key is None:
            return HERE
        return f"{WITH_KEY}, from {request.remote or 'an unknown address'}"


def _other_site(request: web.Request) -> Problem | None:
    """Browsers say from where a page's request comes, also where they send no Origin."""
    site = request.headers.get("Sec-Fetch-Site", "none")
    if site in ("none", "same-origin"):
        return None
    return Problem(403, "Pages of other sites may not call the console.")


def _loopback(remote: str | None) -> bool:
    try:
        address = ipaddress.ip_address((remote or "").partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)
