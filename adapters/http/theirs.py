"""Whose a request is: one rule for every door behind which something of it is told. Pure.

Law (tests/gateway/test_told.py): who shows a key is told of what was asked with it, or in its person's conversations, and of nothing else;
what was written in a chat is told in that chat.
"""

from __future__ import annotations

from adapters.contract.base import FromApi, Inbound, SessionKey
from adapters.contract.callers import Caller

DOORS = frozenset({"api", "web"})
"""Platforms of conversations that are no chat's."""


def asked_by(inbound: Inbound, caller: Caller, browser: str = "") -> bool:
    """Whether a stored message is the caller's; `browser` as in `held_by`."""
    if not isinstance(inbound, FromApi):
        return False
    if not inbound.stateless or inbound.response is not None:
        return held_by(inbound.session, caller, browser)
    person = inbound.memory_scope.partition("/")[2] if inbound.key else ""
    return Caller(inbound.key, person).realm == caller.realm


def held_by(session: SessionKey, caller: Caller, browser: str = "") -> bool:
    """Whether a conversation is the caller's. Where one key opens the page for all, or none is needed, each browser has its own, and
    `browser` is whose realm the request says it comes from."""
    realms = (caller.realm, browser) if browser and not caller.realm else (caller.realm,)
    return session.platform in DOORS and session.person in realms
