"""Logging in at a server by OAuth, and staying so: the package's own flow (discovery, registration, PKCE), on a file of ours.

The package forgets over a restart where a token is renewed and when it ends; both are kept here. The gateway itself never asks anybody to log in: where
that is needed it says so, and whoever runs it does it by ``outspoken mcp login``.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Literal, TypeVar, cast
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.utils import create_client_registration_request, issuers_match
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from pydantic import AnyUrl, BaseModel, ValidationError
from typing_extensions import override

from agent_core.jsonvalue import Json
from agent_core.tools.mcp.link import McpLink
from agent_core.tools.mcp.logins import LoginFile
from agent_core.tools.mcp.terms import ServerTerms

EARLY_SECONDS = 30.0
"""A token is renewed so long before it ends."""
OURSELVES = "http://127.0.0.1/callback"


class LoginNeeded(Exception):
    """Only a person can go on; in words."""


ProofMethod = Literal["none", "client_secret_post", "client_secret_basic"]


def proof_method(taken: Sequence[str] | None, *, secret: bool) -> ProofMethod:
    """How to prove who we are at a login server that takes these ways; where it does not say which, a secret as HTTP's basic (RFC 8414). With a
    secret of its own a client is asked for it; without one we need none, if it may be. Pure."""
    there = frozenset(taken or ("client_secret_basic",))
    for one in _WITH_SECRET if secret else _WITHOUT:
        if one in there:
            return one
    return "client_secret_post" if secret else "none"


_WITH_SECRET: tuple[ProofMethod, ...] = ("client_secret_post", "client_secret_basic")
_WITHOUT: tuple[ProofMethod, ...] = ("none", *_WITH_SECRET)


class _Issuer(str):
    """Who a login server says that it is. A bare host with and without the slash at its end is one server, and servers of tools spell it as they
    like; the package compares letter by letter."""

    __slots__ = ()

    @override
    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and issuers_match(str.__str__(self), str.__str__(other))

    @override
    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__


Shown = Callable[[str], Awaitable[None]]
Returned = Callable[[], Awaitable[str]]
"""The whole address at which the browser ended."""


class StoredLogin(OAuthClientProvider):
    """A login that is kept in a file. Without `shown` and `returned` nobody is asked: `LoginNeeded`."""

    def __init__(
        self,
        terms: ServerTerms,
        file: LoginFile,
        link: McpLink,
        redirect: str = OURSELVES,
        shown: Shown | None = None,
        returned: Returned | None = None,
    ) -> None:
        self._link = link
        self._file = file
        self._terms = terms
        self._shown, self._returned = shown, returned
        metadata = OAuthClientMetadata(
            client_name="outspoken",
            redirect_uris=[AnyUrl(redirect)],
            token_endpoint_auth_method="client_secret_post" if terms.client_secret else "none",
            scope=terms.scope or None,
        )
        super().__init__(terms.url, metadata, self, self._show, self._come_back)

    @override
    async def _initialize(self) -> None:
        await super()._initialize()
        kept = await asyncio.to_thread(self._file.read)
        until = kept.get("expires_at")
        self.context.token_expiry_time = until - EARLY_SECONDS if isinstance(until, int | float) else None
        self.context.oauth_metadata = _read(OAuthMetadata, kept.get("at"))
        self.context.protected_resource_metadata = _read(ProtectedResourceMetadata, kept.get("of"))
        if (of := self.context.protected_resource_metadata) is not None and of.authorization_servers:
            self.context.auth_server_url = str(of.authorization_servers[0])

        self._prove_as_taken()

    @override
    def _expected_issuer(self) -> str:
        return _Issuer(super()._expected_issuer())

    @override
    async def _auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        async with aclosing(super()._auth_flow(request)) as flow:
            asked = await anext(flow)
            while True:
                came = yield self._registering(asked)
                try:
                    asked = await flow.asend(came)
                except StopAsyncIteration:
                    return

    def _registering(self, asked: httpx2.Request) -> httpx2.Request:
        """What the package asks next; a registration as a client of the kind that is taken there."""
        at = self.context.oauth_metadata
        if at is None or asked.method != "POST" or str(asked.url) != str(at.registration_endpoint):
            return asked
        method = proof_method(at.token_endpoint_auth_methods_supported, secret=False)
        metadata = self.context.client_metadata.model_copy(update={"token_endpoint_auth_method": method})
        return create_client_registration_request(at, metadata, str(at.issuer))

    def _prove_as_taken(self) -> None:
        """With the secret of the configuration, in the way that the login server takes."""
        at, client = self.context.oauth_metadata, self.context.client_info
        if at is not None and client is not None and self._terms.client_id and self._terms.client_secret:
            client.token_endpoint_auth_method = proof_method(at.token_endpoint_auth_methods_supported, secret=True)

    # ------------------------------------------------------------------ the package's TokenStorage

    async def get_tokens(self) -> OAuthToken | None:
        return _read(OAuthToken, (await asyncio.to_thread(self._file.read)).get("tokens"))

    async def set_tokens(self, tokens: OAuthToken) -> None:
        until = time.time() + tokens.expires_in if tokens.expires_in is not None else None
        at, of = self.context.oauth_metadata, self.context.protected_resource_metadata
        await asyncio.to_thread(
            self._file.keep, tokens=_written(tokens), expires_at=until, at=_written(at), of=_written(of)
        )

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        if self._terms.client_id:
            return OAuthClientInformationFull(
                client_id=self._terms.client_id,
                client_secret=self._terms.client_secret or None,
                redirect_uris=self.context.client_metadata.redirect_uris,
                token_endpoint_auth_method=self.context.client_metadata.token_endpoint_auth_method,
            )
        return _read(OAuthClientInformationFull, (await asyncio.to_thread(self._file.read)).get("client"))

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        await asyncio.to_thread(self._file.keep, client=_written(client_info))

    # ------------------------------------------------------------------ the person

    async def _show(self, address: str) -> None:
        self._prove_as_taken()
        if self._shown is None:
            words = f"its login is over, and could not be renewed: outspoken mcp login {self._terms.name}"
            self._link.broke(words)
            raise LoginNeeded(words)
        await self._shown(address)

    async def _come_back(self) -> AuthorizationCodeResult:
        assert self._returned is not None
        return came_back(await self._returned())


def came_back(address: str) -> AuthorizationCodeResult:
    """What the address says at which a browser ended. Raises `LoginNeeded` if it is none, or says that it was refused. Pure."""
    query = parse_qs(urlsplit(address.strip()).query)
    said = {name: values[0] for name, values in query.items()}
    if "error" in said:
        raise LoginNeeded(f"The login was refused there: {said.get('error_description') or said['error']}")
    if not said.get("code"):
        raise LoginNeeded("This is not the address at which the browser ends after a login: it holds no code=…")
    return AuthorizationCodeResult(code=said["code"], state=said.get("state"), iss=said.get("iss"))


M = TypeVar("M", bound=BaseModel)


def _read(kind: type[M], kept: Json) -> M | None:
    try:
        return kind.model_validate(kept) if kept is not None else None
    except ValidationError:
        return None


def _written(one: BaseModel | None) -> Json:
    return cast("Json", one.model_dump(mode="json", exclude_none=True)) if one is not None else None
