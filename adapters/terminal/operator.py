"""What whoever runs the gateway asks a running one, from the command line."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from urllib.parse import quote

import aiohttp
import orjson

from adapters.checks.probe import no_reply
from adapters.terminal.ask import GatewayLost, GatewayRefused
from adapters.terminal.nodelines import node_lines
from agent_core.jsonvalue import Json
from agent_core.limits.quotas import size_words
from agent_core.text.durations import at_time, duration

Table = Mapping[str, Json]
LONGEST_SECONDS = 15
"""How long an answer is waited for."""
SLOW_SECONDS = 1.0
"""So long silently."""
LONG_SECONDS = 60
"""From here on a turn that is open is named."""
NOT_SERVED = "unknown_url"
"""The code of an answer that there is no such address: what it belongs to is not configured there."""
NO_RECEIVERS = "No webhook is configured where the gateway runs ([webhooks.NAME])."


@contextmanager
def told_if_slow(tell: Callable[[str], None] | None, words: str) -> Generator[None]:
    """What takes longer than a moment is not waited for in silence."""
    if tell is None:
        yield
        return
    telling = asyncio.get_running_loop().call_later(SLOW_SECONDS, tell, words)
    try:
        yield
    finally:
        telling.cancel()


class Remote:
    """The gateway at an address."""

    def __init__(
        self,
        url: str,
        key: str | None,
        more: Mapping[str, str] | None = None,
        *,
        tell: Callable[[str], None] | None = None,
    ) -> None:
        """`more` headers go with every request. `tell` is called with what is waited for, where an answer is slow."""
        self._url = url
        self._tell = tell
        self._headers = {**(more or {}), **({"Authorization": f"Bearer {key}"} if key else {})}

    async def status(self) -> Table:
        """The status. Raises `GatewayLost`, `GatewayRefused`."""
        return await self.call("GET", "/status", None)

    async def metrics(self) -> str:
        """What it has counted, in Prometheus' text format. Raises `GatewayLost`, `GatewayRefused`."""
        status, answer = await self._ask("GET", "/metrics", None)
        if status != 200:
            raise GatewayRefused(f"The gateway does not show its metrics (HTTP {status}).")
        return answer.decode("utf-8", "replace")

    async def people(self) -> Sequence[Table]:
        """Everybody who is known."""
        return tables((await self.call("GET", "/api/access", None)).get("people"))

    async def decide(self, verb: str, who: str) -> Sequence[Table]:
        """Approve or revoke somebody; who it was."""
        return tables([(await self.call("POST", "/api/access", {"verb": verb, "who": who})).get("person")])

    async def approvals(self) -> Sequence[Table]:
        """Every call that waits for somebody's word."""
        return tables((await self.call("GET", "/api/approvals", None)).get("approvals"))

    async def decide_call(self, name: str, *, approve: bool, lasts: str) -> Table:
        """Give or deny one: as it is then."""
        return await self.call("POST", "/api/approvals", {"id": name, "approve": approve, "lasts": lasts})

    async def keys(self) -> Sequence[Table]:
        """All keys of the API."""
        return tables((await self.call("GET", "/api/keys", None)).get("keys"))

    async def key(self, verb: str, name: str, more: Table) -> tuple[Table, str]:
        """Make or change a key: as it is then, and the key itself if there is a new one."""
        body = await self.call("POST", "/api/keys", {"verb": verb, "name": name, **more})
        found = body.get("key")
        return (found if isinstance(found, dict) else {}), str(body.get("secret") or "")

    async def send(
        self, to: str, text: str, files: Sequence[tuple[str, bytes]], key: str, *, agents: bool = False
    ) -> Table:
        """Say something in a chat: ``id`` and ``state`` of the delivery, once it is stored. What `agents` want goes only where ours may write."""
        carried: list[Json] = [{"name": name, "data": base64.b64encode(data).decode()} for name, data in files]
        body: Table = {"to": to, "text": text, "files": carried, "key": key}
        return await self.call("POST", "/api/send", {**body, "agents": True} if agents else body)

    async def delivery(self, number: str, wait_seconds: float) -> Table:
        """How a delivery is doing; comes back at the latest after the time, sooner if it is settled."""
        return await self.call("GET", f"/api/send/{quote(number, safe='')}?wait={wait_seconds:g}", slowly=True)

    async def webhooks(self) -> Sequence[Table]:
        """How the receivers of webhooks are doing; none where there are none."""
        try:
            return tables((await self.call("GET", "/api/webhooks", None)).get("webhooks"))
        except GatewayRefused as refused:
            if refused.code == NOT_SERVED:
                return []
            raise

    async def webhook(self, verb: str, receiver: str, one: str) -> Table:
        """Try a receiver, send again, or turn it on."""
        try:
            return await self.call("POST", "/api/webhooks", {"verb": verb, "receiver": receiver, "id": one})
        except GatewayRefused as refused:
            if refused.code == NOT_SERVED:
                raise GatewayRefused(NO_RECEIVERS, refused.status) from refused
            raise

    async def _ask(self, method: str, path: str, body: Table | None, *, slowly: bool = False) -> tuple[int, bytes]:
        data = orjson.dumps(body) if body is not None else None
        headers = {**self._headers, "Content-Type": "application/json"}
        waiting = f"Waiting for the gateway at {self._url} to answer, {LONGEST_SECONDS} s at most …"
        try:
            with told_if_slow(None if slowly else self._tell, waiting):
                async with (
                    aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=LONGEST_SECONDS)) as http,
                    http.request(method, self._url + path, data=data, headers=headers) as response,
                ):
                    return response.status, await response.read()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise self._lost(error) from error

    def _lost(self, error: Exception) -> GatewayLost:
        return GatewayLost(f"The gateway at {self._url} does not answer: {no_reply(error, self._url).words}.")

    async def call(self, method: str, path: str, body: Table | None = None, *, slowly: bool = False) -> Table:
        """The object that a route answers with, which may take its time if it does so `slowly`. Raises `GatewayLost`, `GatewayRefused`."""
        status, read = await self._ask(method, path, body, slowly=slowly)
        try:
            answer: Json = orjson.loads(read)
        except orjson.JSONDecodeError as error:
            raise GatewayLost(f"What answers at {self._url} is no gateway (HTTP {status}).") from error
        table = answer if isinstance(answer, dict) else {}
        problem = table.get("error")
        if isinstance(problem, dict):
            raise GatewayRefused(str(problem.get("message")), status, str(problem.get("code")))
        return table


def tables(value: Json) -> list[Table]:
    """The objects of a list."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _here(words: str) -> str:
    """Words of a message that sends its reader to the status, where they stand in the status itself."""
    return words.removesuffix(": outspoken status.") + "." * words.endswith(": outspoken status.")


def _audit(value: Json) -> list[str]:
    """What the auditor has looked at. What it found is an alert, and said as one."""
    if not isinstance(value, dict) or not value.get("looked_at"):
        return []
    count = value.get("count")
    found = "every law is kept" if not count else f"laws are broken at {count} place(s): outspoken audit"
    return [f"Audited: {value.get('looked')} turns, messages and parts since the start; {found}."]


def status_lines(body: Table) -> list[str]:
    problems = body.get("problems")
    lines = [_head(body), _models(body)]
    lines += [f"Not ready: {words}" for words in _words(problems)]
    known = {*_words(problems), *(str(alert.get("words")) for alert in tables(body.get("alerts")))}
    lines += [f"Not well: {_here(words)}" for words in _words(body.get("unwell")) if words not in known]
    lines += [f"Storage: {body.get('storage')}"] if body.get("storage") else []
    lines += [f"⚠️ {_here(str(alert.get('words')))}" for alert in tables(body.get("alerts"))]
    lines += [
        f"Set aside, because it cannot be read: {one.get('chat')} ({one.get('session')})"
        for one in tables(body.get("set_aside"))[:20]
    ]
    lines += [
        f"Set aside, and not carried out: the schedule {one.get('schedule')}: {one.get('words')}"
        for one in tables(body.get("schedules_set_aside"))[:20]
    ]
    lines += [
        f"🚨 Incident: {one.get('title')}, {one.get('conversations')} conversations (outspoken explain {one.get('incident')})"
        for one in tables(body.get("incidents"))
    ]
    lines += node_lines(list(tables(body.get("nodes"))))
    lines += [_adapter(one) for one in tables(body.get("adapters"))] or ["No chat platform is configured."]
    lines.append(
        f"Open turns: {_known(body.get('open_turns'))}{_oldest(body.get('oldest_turn'))}; chats with waiting messages: {_known(body.get('waiting_sessions'))}"
    )
    lines += [f"Running turns with {words}: {count}" for words, count in _sorted(body.get("running_for"))]
    lines += _audit(body.get("audit"))
    lines += [_spend(one) for one in tables(body.get("spend"))]
    lines += _kept(body.get("quota"))
    lines += _removed(body.get("retention"))
    lines += [f"Forgetting a person ({one.get('forget')})." for one in tables(body.get("forgetting"))]
    lines += _words(body.get("forgotten"))
    lines += [f"Webhook {line}" for line in webhook_lines(hooks)] if (hooks := tables(body.get("webhooks"))) else []
    lines += _shell(body.get("shell"))
    lines += [_tool_server(one) for one in tables(body.get("mcp"))]
    unsent = body.get("unsent_parts")
    if unsent:
        why = f" – {words}" if (words := body.get("unsent_why")) else ""
        lines.append(
            f"Not delivered yet: {unsent} part{'' if unsent == 1 else 's'}, the oldest for {body.get('oldest_unsent_seconds')} s{why}"
        )
    lines += [
        f"Trouble in {t.get('chat')}: {t.get('words')} ({t.get('cause')})" for t in tables(body.get("troubled_chats"))
    ]
    lines += [
        f"{'Set aside' if f.get('set_aside') else 'Refused for good'}: {f.get('part')}: {f.get('cause')}"
        for f in tables(body.get("failed_parts"))
    ]
    return lines


def all_well(body: Table) -> bool:
    """Whether the gateway takes messages and has nothing to tell operators."""
    return bool(body.get("ready")) and bool(body.get("well"))


def _head(body: Table) -> str:
    """Which program runs, since when and where."""
    up = body.get("uptime_seconds")
    since = f", up for {duration(up)}" if isinstance(up, int) else ""
    at = f", at {body.get('address')}" if body.get("address") else ""
    return f"outspoken {body.get('version')}{since}{at}"


def _oldest(turn: Json) -> str:
    """The turn that has been open for longest, once that is long."""
    seconds = turn.get("seconds") if isinstance(turn, dict) else None
    if not isinstance(turn, dict) or not isinstance(seconds, int) or seconds < LONG_SECONDS:
        return ""
    return f", the oldest for {duration(seconds)} (outspoken explain {turn.get('turn')})"


def _models(body: Table) -> str:
    """Whom turns ask, in order."""
    if body.get("rehearsal"):
        return "Model: none is configured, so the rehearsal model answers"
    return f"Model: {', then '.join(map(_model, tables(body.get('models'))))}"


def _model(one: Table) -> str:
    """A model and where it is; what several models of one place are told apart by is the model's name, which stands there already."""
    names = ", ".join(_words(one.get("models")))
    return f"{names or 'what is offered'} at {str(one.get('endpoint')).removesuffix(f' {names}')}"


def _sorted(value: Json | None) -> list[tuple[str, Json]]:
    return sorted(value.items()) if isinstance(value, dict) else []


def _known(value: Json | None) -> str:
    """What is stored is not known while the storage cannot be read."""
    return "not known" if value is None else str(value)


def _removed(value: Json | None) -> list[str]:
    """What the last upkeep removed."""
    found = value if isinstance(value, dict) else {}
    if not found.get("at"):
        return []
    kinds = ("messages", "parts", "journals", "files", "records", "workspaces", "spooled", "failures")
    gone = [f"{found.get(kind)} {kind}" for kind in kinds if found.get(kind)]
    size = found.get("database_bytes")
    told = f" The database is {size_words(size)}." if isinstance(size, int) else ""
    lines = [f"The last upkeep removed {', '.join(gone) or 'nothing'}.{told}"]
    if found.get("doubted"):
        lines.append(
            "The clock is ahead of the time that is known to have passed: it was put forward, or the gateway was off. "
            "By the difference nothing counts as older before the gateway has run for a day."
        )
    return lines


def _words(value: Json | None) -> list[str]:
    return [str(one) for one in value] if isinstance(value, list) else []


def _spend(one: Table) -> str:
    """A budget of everybody in a line."""
    parts, full = list[str](), False
    for measure in ("tokens", "money"):
        used, limit = one.get(f"{measure}_used"), one.get(f"{measure}_limit")
        if isinstance(used, int) and isinstance(limit, int) and limit:
            parts.append(f"{used * 100 // limit} % of its {measure}")
            full |= used >= limit
    over = "; it is used up, and no model is asked until it opens again" if full else ""
    return f"Budget of this {one.get('budget')}: {', '.join(parts)}{over}"


def _kept(quota: Json) -> list[str]:
    """How much is kept, and who has most of it."""
    if not isinstance(quota, dict):
        return []
    used, limit, kinds = quota.get("used_bytes"), quota.get("limit_bytes"), quota.get("kinds")
    if not isinstance(used, int) or not isinstance(limit, int) or not isinstance(kinds, dict):
        return []
    share = f" of {size_words(limit)} ({used * 100 // limit} %)" if limit else ""
    of = ", ".join(
        f"{size_words(size)} {kind}"
        for kind, size in kinds.items()
        if isinstance(size, int) and kind != "files" and size
    )
    lines = [
        f"Kept: {size_words(used)}{share}{f'; of it {of}' if of else ''}"
        if quota.get("counted")
        else "Kept: being counted"
    ]
    most = [
        f"{one.get('holder')} {size_words(sum(v for k in ('workspace', 'spool', 'memory') if isinstance(v := one.get(k), int)))}"
        for one in tables(quota.get("most"))[:3]
    ]
    lines += [f"Most of it: {'; '.join(most)}"] if most else []
    refused = quota.get("refused")
    told = [f"{kind} {count}" for kind, count in refused.items() if count] if isinstance(refused, dict) else []
    return [*lines, f"Refused for want of room since the start: {', '.join(told)}"] if told else lines


def _adapter(one: Table) -> str:
    words = f" – {one.get('words')}" if one.get("words") else ""
    words += f" – {one.get('unread')} kept that cannot be taken in" if one.get("unread") else ""
    seen = ", ".join(
        f"last {way} {_age(age)}"
        if isinstance(age := one.get(f"{where}_age_seconds"), int | float)
        else f"nothing {way} yet"
        for way, where in (("in", "inbound"), ("out", "outbound"))
    )
    return f"{one.get('name')}: {one.get('state')}{words} ({seen})"


def _age(seconds: float) -> str:
    return f"{seconds:.0f} s ago" if seconds < 120 else f"{seconds / 60:.0f} min ago"


NOBODY_ASKED = "Nobody has asked to come in, and nobody has spoken under a name."


def people_lines(people: Sequence[Table]) -> list[str]:
    return [_person(one) for one in people] or [NOBODY_ASKED]


def _person(one: Table) -> str:
    at = one.get("at")
    when = at_time(at).strftime("%Y-%m-%d %H:%M") if isinstance(at, int) else ""
    code = f"  code {one.get('code')}" if one.get("code") else ""
    by = f"  by {one.get('by')}" if one.get("by") else ""
    return f"{one.get('state')!s:9} {one.get('account')}  {one.get('person')}  {one.get('name')}{code}{by}  {when}"


def delivery_settled(body: Table) -> bool:
    """Nothing more will happen to a delivery."""
    return body.get("state") in ("sent", "failed")


def delivery_line(body: Table) -> str:
    match body.get("state"):
        case "sent":
            return "Delivered."
        case "failed":
            return f"It could not be delivered: {body.get('cause')}"
        case _:
            return f"The last try failed: {body.get('cause')}" if body.get("cause") else ""


def _shell(found: Json) -> list[str]:
    """Commands of the agent in a line; none where nobody wants any."""
    if not isinstance(found, dict) or found.get("state") == "off":
        return []
    words = found.get("words")
    return [str(words)] if words else [f"Commands of the agent: {found.get('running')} running"]


def _tool_server(one: Table) -> str:
    """A server of tools in a line."""
    offered = sum(1 for tool in tables(one.get("tools")) if tool.get("name"))
    words = f" – {one.get('words')}" if one.get("words") else ""
    return (
        f"Server of tools {one.get('server')}: {one.get('state')}, tools: {offered}, calls: {one.get('calls')}{words}"
    )


def webhook_lines(found: Sequence[Table]) -> list[str]:
    """Each receiver in a line, and below it what it was not told."""
    lines: list[str] = []
    for one in found:
        state = f"off, because {one.get('off')}" if one.get("off") else "on"
        if one.get("failing_since"):
            state += f", has taken nothing since {one.get('failing_since')}"
        counts = f"{one.get('waiting')} waiting, {one.get('sent')} sent since the start, {one.get('given_up')} given up"
        lines.append(f"{one.get('receiver')}: {state}; {counts} ({one.get('url')})")
        lines += [
            f"  given up: {lost.get('id')} {lost.get('event')} of {lost.get('at')}: {lost.get('why')}"
            for lost in tables(one.get("last_given_up"))
        ]
    return lines or ["No webhook is configured."]
