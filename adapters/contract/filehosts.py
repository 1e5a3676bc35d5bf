"""Where a platform's files lie: only there is a file fetched from, and only there is a token sent. Pure.

Why: the address of a file comes with a message, so that somebody else may have chosen it (Slack's *external* files name any host).
A redirect is an address like any other and is judged again.
Known to be weak: what an allowed name resolves to is not looked at; the platform's own certificate has to stand for that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from yarl import URL


@dataclass(frozen=True, slots=True)
class FileHosts:
    """The hosts of one platform's files."""

    domains: tuple[str, ...]
    """Each with everything below it; over TLS at the usual port only."""
    instead: str = ""
    """A server that the configuration names in the platform's place, with its scheme and port; empty if there is none."""

    def allows(self, url: URL) -> bool:
        """Whether a file may be fetched from there."""
        if not url.absolute or not url.scheme or url.user is not None or url.password is not None or not url.raw_host:
            return False
        if self.instead and url.origin() == URL(self.instead).origin():
            return True
        return url.scheme == "https" and url.port == 443 and _below(url.raw_host, self.domains)


def _below(host: str, domains: Sequence[str]) -> bool:
    return any(host == domain or host.endswith(f".{domain}") for domain in domains)
