"""What whoever runs the gateway can ask and change over HTTP: ``/status`` and ``/api/access``.

Needs the operators' key; without one, only callers on this machine are served (the server listens to no others then).
"""

from __future__ import annotations

import asyncio

import orjson
from aiohttp import web

from adapters.http.common import Problem, Served, guarded, problem_response
from adapters.http.entrance import NotJson, json_of
from adapters.http.routes import HttpRoute
from agent_core.jsonvalue import Json
from gateway.chats.platforms import Platforms
from gateway.http.status import Look
from gateway.people import access

BY = "operator"


class Admin:
    """Serves them."""

    def __init__(self, chats: Platforms, key: str | None, look: Look) -> None:
        self._chats = chats
        self._key = key
        self._look = look

    def routes(self) -> list[web.RouteDef]:
        return [
            HttpRoute.STATUS.served(self._guarded(self._status)),
            HttpRoute.LIST_PEOPLE.served(self._guarded(self._people)),
            HttpRoute.CHANGE_PEOPLE.served(self._guarded(self._decide)),
        ]

    def _guarded(self, handler: Served) -> Served:
        return guarded(self._key, handler)

    async def _status(self, _: web.Request) -> web.Response:
        return json_response(await self._look.status())

    async def _people(self, _: web.Request) -> web.Response:
        people = await self._chats.members.everybody()  # of whom there may be very many
        return await asyncio.to_thread(lambda: json_response({"people": [access.table_of(row) for row in people]}))

    async def _decide(self, request: web.Request) -> web.Response:
        try:
            body = json_of(await request.read())
        except NotJson as error:
            return problem_response(Problem(400, str(error)))
        if not isinstance(body, dict) or not isinstance(who := body.get("who"), str):
            return problem_response(Problem(400, "who must be a code or an id", param="who"))
        match body.get("verb"):
            case "approve":
                row = await self._chats.members.approve(who, BY)
            case "revoke":
                try:
                    row = await self._chats.members.revoke(who, BY)
                except access.LetInElsewhere as error:
                    return problem_response(Problem(409, str(error), param="who"))
            case "forget":
                meant = access.account_and_person(who)
                if meant is None:
                    return problem_response(Problem(400, "who must be ACCOUNT/PERSON", param="who"))
                account, person = meant
                forgetting = self._look.forgetting
                known = await forgetting.store.forgotten.known([(account, person)])
                job = await forgetting.begin((account, person), BY)
                found: dict[str, Json] = {"account": account, "person": person, "forget": job.forget, "known": known}
                return json_response({"person": found})
            case _:
                return problem_response(Problem(400, "verb must be approve, revoke or forget", param="verb"))
        if row is None:
            return problem_response(Problem(404, "There is no such code or person. Codes are valid for an hour."))
        return json_response({"person": access.table_of(row)})


def json_response(body: dict[str, Json]) -> web.Response:
    """An answer."""
    return web.Response(body=orjson.dumps(body), content_type="application/json")
