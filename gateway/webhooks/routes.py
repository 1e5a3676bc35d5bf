"""What whoever runs the gateway asks and changes of webhooks over HTTP: ``/api/webhooks``. Needs the operators' key."""

from __future__ import annotations

import orjson
from aiohttp import web

from adapters.http.common import Problem, guarded, problem_response
from adapters.http.entrance import NotJson, json_of
from adapters.http.routes import HttpRoute
from agent_core.jsonvalue import Json
from agent_core.ports import Ids
from gateway.webhooks.sender import HookSender


class HookRoutes:
    """Serves them."""

    def __init__(self, sender: HookSender, key: str | None, ids: Ids) -> None:
        self._sender = sender
        self._key = key
        self._ids = ids

    def routes(self) -> list[web.RouteDef]:
        return [
            HttpRoute.LIST_WEBHOOKS.served(guarded(self._key, self._list)),
            HttpRoute.CHANGE_WEBHOOKS.served(guarded(self._key, self._act)),
        ]

    async def _list(self, _: web.Request) -> web.Response:
        return _json({"webhooks": await self._sender.status()})

    async def _act(self, request: web.Request) -> web.Response:
        try:
            body = json_of(await request.read())
        except NotJson as error:
            return problem_response(Problem(400, str(error)))
        given = body if isinstance(body, dict) else {}
        name, one = given.get("receiver"), given.get("id", "")
        if not isinstance(name, str) or not isinstance(one, str):
            return problem_response(Problem(400, "receiver and id must be texts", param="receiver"))
        if not self._sender.knows(name):
            return problem_response(Problem(404, f"There is no webhook {name[:100]!r} in the configuration."))
        match given.get("verb"):
            case "test":
                return _json({"sent": await self._sender.test(name, self._ids.new("test"))})
            case "resend":
                count = await self._sender.resend(name, one)
                if one and not count:
                    return problem_response(Problem(404, f"There is no message {one[:100]!r} to the webhook {name}."))
                return _json({"again": count})
            case "on":
                return _json({"changed": await self._sender.turn_on(name)})
            case _:
                return problem_response(Problem(400, "verb must be test, resend or on", param="verb"))


def _json(body: dict[str, Json]) -> web.Response:
    return web.Response(body=orjson.dumps(body), content_type="application/json")
