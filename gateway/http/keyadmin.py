"""Keys of the API for whoever runs the gateway: ``/api/keys``. Needs the operators' key, as `gateway.http.admin`."""

from __future__ import annotations

from aiohttp import web

from adapters.http.common import Problem, guarded, problem_response
from adapters.http.entrance import NotJson, json_of
from adapters.http.routes import HttpRoute
from agent_core.jsonvalue import Json
from agent_core.limits.budgets import BudgetRules
from gateway.http.admin import json_response
from gateway.people.keyring import Keyring
from gateway.people.keys import KeyRefused, Nameable
from gateway.sessions.hub import Hub

MOST_KEPT_SECONDS = 7 * 24 * 3600


class KeyAdmin:
    """Serves them."""

    def __init__(self, keyring: Keyring, hub: Hub, key: str | None) -> None:
        self._keyring = keyring
        self._hub = hub
        self._key = key

    def routes(self) -> list[web.RouteDef]:
        return [
            HttpRoute.LIST_KEYS.served(guarded(self._key, self._list)),
            HttpRoute.CHANGE_KEYS.served(guarded(self._key, self._act)),
        ]

    async def _list(self, _: web.Request) -> web.Response:
        rules = self._hub.budgets.rules if self._hub.budgets is not None else BudgetRules()
        return json_response({"keys": await self._keyring.tables(rules)})

    async def _act(self, request: web.Request) -> web.Response:
        try:
            body = json_of(await request.read())
        except NotJson as error:
            return problem_response(Problem(400, str(error)))
        name = body.get("name") if isinstance(body, dict) else None
        if not isinstance(body, dict) or not isinstance(name, str):
            return problem_response(Problem(400, "name must be a key's name", param="name"))
        try:
            return await self._done(body, name)
        except KeyRefused as refused:
            return problem_response(Problem(400, str(refused)))

    async def _done(self, body: dict[str, Json], name: str) -> web.Response:
        asked = body.get("terms") or {}
        if not isinstance(asked, dict):  # without them the key may do everything
            return problem_response(Problem(400, "terms must be an object", param="terms"))
        match body.get("verb"):
            case "add":
                table, key = await self._keyring.add(name, asked, self._nameable())
                answer = json_response({"key": table, "secret": key})
            case "rotate":
                keep = body.get("keep_seconds")
                seconds = min(keep, MOST_KEPT_SECONDS) if isinstance(keep, int) and keep > 0 else 0
                table, key = await self._keyring.rotate(name, seconds)
                answer = json_response({"key": table, "secret": key})
            case "change":
                return json_response({"key": await self._keyring.change(name, asked, self._nameable())})
            case "revoke":
                return json_response({"key": await self._keyring.revoke(name)})
            case _:
                return problem_response(Problem(400, "verb must be add, change, rotate or revoke", param="verb"))
        answer.headers["Cache-Control"] = "no-store"
        return answer

    def _nameable(self) -> Nameable:
        return self._hub.nameable()
