"""What a client keeps for the gateway and nobody else may read or change: sealed, and opened when it comes back.

Theory. A client that keeps its conversation itself (``store: false``) has to bring the model's thoughts back, and whoever runs the gateway may not want
them read. So they go out encrypted and authenticated (AES-SIV, RFC 5297: the same content gives the same seal, and no number has to be unique),
bound to those who share the caller's conversations. A seal of another gateway, or of another provider, cannot be opened; nobody is refused for it.
"""

from __future__ import annotations

import asyncio
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from typing import TYPE_CHECKING

import orjson
import structlog

from agent_core.jsonvalue import Json

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESSIV

log = structlog.get_logger("api")

MARK = "os1."
"""How a seal of ours begins."""
MOST_CHARS = 2_000_000
_USE = b"outspoken: thoughts"


class Seals:
    """Seals and opens with the gateway's own key."""

    def __init__(self, key: Callable[[], bytes]) -> None:
        """`key` gives 64 bytes, the same each time; it may raise `OSError`. It is asked when something is first sealed or opened."""
        self._key = key
        self._cipher: AESSIV | None = None

    async def at_hand(self) -> bool:
        """Have the key at hand; whether it can be had."""
        if self._cipher is None:
            try:
                self._cipher = await asyncio.to_thread(self._made)
            except OSError as error:
                log.warning("api.cannot_seal", error=type(error).__name__)
        return self._cipher is not None

    def _made(self) -> AESSIV:
        from cryptography.hazmat.primitives.ciphers.aead import AESSIV  # 12 ms, and few ever need it

        return AESSIV(self._key())

    def seal(self, value: Json, whose: str) -> str:
        """The value, for nobody's eyes; empty if the key is not at hand."""
        if self._cipher is None:
            return ""
        return MARK + urlsafe_b64encode(self._cipher.encrypt(orjson.dumps(value), [_USE, whose.encode()])).decode()

    def opened(self, text: str, whose: str) -> Json:
        """What was sealed for the same people; None if it was not, or not here."""
        if not text.startswith(MARK) or len(text) > MOST_CHARS or self._cipher is None:
            return None
        from cryptography.exceptions import InvalidTag

        try:
            found = urlsafe_b64decode(text.removeprefix(MARK))
            return orjson.loads(self._cipher.decrypt(found, [_USE, whose.encode()]))
        except (ValueError, InvalidTag):
            return None
