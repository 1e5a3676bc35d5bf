"""The gateway: websocket connections, what they say, and what can be done to them."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Sequence
from typing import cast

import orjson
from aiohttp import WSMsgType, web

from tests.fakes.common import Bell, Json, JsonObject, cut
from tests.fakes.discord import wire
from tests.fakes.discord.connections import (
    Close,
    Connection,
    Cut,
    Frame,
    Ignore,
    Invalid,
    Reaction,
    crowding,
    write_frames,
)
from tests.fakes.discord.forms import snowflake_of
from tests.fakes.discord.places import CONTENT_FLAG
from tests.fakes.discord.sessions import (
    ENDING,
    PRIVILEGED,
    CloseCode,
    Dispatch,
    Intent,
    Op,
    Session,
    frame,
    unknown_intents,
)
from tests.fakes.discord.world import Event, World

MAX_FRAME_BYTES = 4096
RESUME_PATH = "/resume-gateway"
PATH = "/gateway"
SESSION_SECONDS = 300.0
"""How long a session without a connection can be resumed. The documentation does not say."""


class Gateway:
    """All connections and sessions. See the methods for what a test can do to them."""

    def __init__(self, world: World, bell: Bell, token: str, granted: Intent, heartbeat_seconds: float) -> None:
        self._world = world
        self._bell = bell
        self._token = token
        self._granted = granted
        self.heartbeat_seconds = heartbeat_seconds
        self.connections: list[Connection] = []
        """All that ever were."""
        self.sessions: list[Session] = []
        """Those that can go on."""
        self.ended: list[Session] = []
        """Those that cannot."""
        self.frames: list[Frame] = []
        """Everything that clients said."""
        self._reactions: dict[Op, deque[Reaction]] = {}
        self._held: list[Event] | None = None
        self._repeats = 0
        self.starts_left = 1000
        """How many sessions may still be begun today."""
        self.max_concurrency = 1
        """How many shards may identify at once, those of different remainders."""
        world.outlet = self.tell

    # --- what there is to see ---

    @property
    def open(self) -> list[Connection]:
        """The connections that stand."""
        return [one for one in self.connections if one.is_open]

    @property
    def live(self) -> list[Session]:
        """The sessions that have a connection."""
        return [one.session for one in self.open if one.session is not None]

    def of(self, op: Op) -> list[Frame]:
        """What clients said of one kind."""
        return [one for one in self.frames if one.op == op]

    def told(self, name: str) -> list[Dispatch]:
        """The events of one kind that were told to any session, in the order of sessions."""
        return [one for session in (*self.ended, *self.sessions) for one in session.sent if one.name == name]

    # --- what goes wrong ---

    def react(self, op: Op, *reactions: Reaction) -> None:
        """What the next frames of a kind meet, one each."""
        self._reactions.setdefault(op, deque()).extend(reactions)

    def _chosen(self, shard: int | None) -> list[Connection]:
        return [one for one in self.open if shard is None or (one.session is not None and one.session.shard == shard)]

    def close(self, code: int, reason: str = "", *, shard: int | None = None) -> None:
        """Close the connections of a shard (None: all) with this code. Some codes end the session; see `sessions.ENDING`."""
        for connection in self._chosen(shard):
            self._close(connection, Close(code, reason))

    def cut(self, *, clean: bool = False, shard: int | None = None) -> None:
        """End connections without a close frame."""
        for connection in self._chosen(shard):
            cut(connection.transport, clean=clean)

    def reconnect(self, *, shard: int | None = None) -> None:
        """Tell clients to come back (op 7)."""
        for connection in self._chosen(shard):
            connection.send(frame(Op.RECONNECT, None))

    def invalidate(self, *, resumable: bool, shard: int | None = None) -> None:
        """Tell clients that their session is invalid (op 9); if it is not resumable, it is gone."""
        for connection in self._chosen(shard):
            self._invalidate(connection, Invalid(resumable))

    def deafen(self, *, shard: int | None = None) -> None:
        """Connections stay open, but nothing comes any more: no events, no acknowledgements. Events are kept for a RESUME."""
        for connection in self._chosen(shard):
            connection.deaf = True

    def stop_acks(self, *, shard: int | None = None) -> None:
        """Heartbeats are not acknowledged any more; events still come."""
        for connection in self._chosen(shard):
            connection.acks = False

    def dispatch(self, name: str, body: JsonObject, *, shard: int | None = None) -> None:
        """Tell an event that nothing happened for, such as one that clients cannot read."""
        for connection in self._chosen(shard):
            if connection.session is not None:
                connection.send(connection.session.put(name, body).frame())

    def repeat_on_resume(self, count: int) -> None:
        """At the next RESUME so many events are told again that the client has had already."""
        self._repeats = count

    def redeliver(self, *dispatches: Dispatch) -> None:
        """Tell events again, under new numbers; none named: the last one of each session that listens."""
        for connection in self.open:
            if connection.session is not None:
                for one in dispatches or connection.session.sent[-1:]:
                    connection.send(connection.session.put(one.name, one.body).frame())

    def forget(self) -> None:
        """Sessions cannot be resumed any more; connections stay."""
        self.ended.extend(self.sessions)
        self.sessions.clear()

    def hold(self) -> None:
        """What happens from now on is not told before `release`."""
        self._held = []

    @property
    def held(self) -> int:
        """How many events are held."""
        return len(self._held or [])

    def release(self, order: Sequence[int] | None = None) -> None:
        """Tell what was held, in this order (positions, 0 first); what is not in it is never told."""
        held, self._held = self._held or [], None
        for position in range(len(held)) if order is None else order:
            self.tell(held[position])

    # --- telling ---

    def tell(self, event: Event) -> None:
        """Something has happened."""
        if self._held is not None:
            self._held.append(event)
            return
        for session in self.sessions:
            if session.wants(event):
                dispatch = session.put_event(event)
                for connection in self.open:
                    if connection.session is session:
                        connection.send(dispatch.frame())
        self._bell.ring()

    def _close(self, connection: Connection, close: Close) -> None:
        if close.code in ENDING and connection.session is not None:
            self._end(connection.session)
        connection.close(close)

    def _end(self, session: Session) -> None:
        if session in self.sessions:
            self.sessions.remove(session)
            self.ended.append(session)

    def _invalidate(self, connection: Connection, invalid: Invalid) -> None:
        if not invalid.resumable and connection.session is not None:
            self._end(connection.session)
            connection.session = None
        connection.send(frame(Op.INVALID_SESSION, invalid.resumable))

    # --- a connection ---

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """Talk with a client until the connection ends."""
        ws = web.WebSocketResponse(timeout=1.0, compress=False, autoclose=True)
        await ws.prepare(request)
        connection = Connection(len(self.connections) + 1, request.path, ws, request.transport, time.monotonic())
        self.connections.append(connection)
        writer = asyncio.create_task(write_frames(connection), name=f"gateway connection {connection.number}")
        if request.query.get("v") != "10" or request.query.get("encoding") != "json":
            connection.close(Close(CloseCode.INVALID_VERSION, "Invalid API version."))
        else:
            interval = int(self.heartbeat_seconds * 1000)
            connection.send(frame(Op.HELLO, {"heartbeat_interval": interval, "_trace": ["fake"]}))
        self._bell.ring()
        try:
            await self._read(connection)
        finally:
            writer.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await writer
            self._left(connection)
        return ws

    def _left(self, connection: Connection) -> None:
        connection.closed_at = time.monotonic()
        code = connection.ws.close_code
        connection.close_code = connection.closing.code if connection.closing is not None else code or 1006
        session = connection.session
        if session is not None:
            session.left_at = self._world.clock.monotonic()
            if connection.closing is None and code in {1000, 1001}:
                # A client that says goodbye does not come back.
                self._end(session)
        self._bell.ring()

    async def _read(self, connection: Connection) -> None:
        last_beat = time.monotonic()
        while True:
            if connection.beats:
                last_beat = connection.beats[-1]
            left = last_beat + 2 * self.heartbeat_seconds - time.monotonic()
            try:
                message = await connection.ws.receive(timeout=max(0.01, left))
            except TimeoutError:
                self._close(connection, Close(CloseCode.SESSION_TIMED_OUT, "Session timed out."))
                last_beat = time.monotonic()
                continue
            if message.type not in {WSMsgType.TEXT, WSMsgType.BINARY}:
                return
            if connection.closing is None:
                self._hear(connection, message.data)
                self._bell.ring()

    def _hear(self, connection: Connection, data: str | bytes) -> None:
        refusal = crowding(connection)
        try:
            parsed = cast("Json", orjson.loads(data))
        except orjson.JSONDecodeError:
            parsed = None
        op = parsed.get("op") if isinstance(parsed, dict) else None
        size = len(data.encode() if isinstance(data, str) else data)
        if not isinstance(parsed, dict) or not isinstance(op, int) or size > MAX_FRAME_BYTES:
            refusal = Close(CloseCode.DECODE_ERROR, "Error while decoding payload.")
            return self._close(connection, refusal)
        self.frames.append(Frame(time.monotonic(), connection.number, op, parsed.get("d")))
        if refusal is not None:
            return self._close(connection, refusal)
        if op not in {one.value for one in Op}:
            return self._close(connection, Close(CloseCode.UNKNOWN_OPCODE, "Unknown opcode."))
        planned = self._reactions.get(Op(op))
        reaction = planned.popleft() if planned else None
        match reaction:
            case None:
                return self._obey(connection, Op(op), parsed.get("d"))
            case Close():
                return self._close(connection, reaction)
            case Cut(clean):
                return cut(connection.transport, clean=clean)
            case Invalid():
                return self._invalidate(connection, reaction)
            case Ignore():
                return None

    def _obey(self, connection: Connection, op: Op, data: Json) -> None:
        match op:
            case Op.HEARTBEAT:
                connection.beats.append(time.monotonic())
                if connection.acks:
                    connection.send(frame(Op.HEARTBEAT_ACK, None))
            case Op.IDENTIFY | Op.RESUME if connection.session is not None:
                self._close(connection, Close(CloseCode.ALREADY_AUTHENTICATED, "Already authenticated."))
            case Op.IDENTIFY if isinstance(data, dict):
                self._identify(connection, data)
            case Op.RESUME if isinstance(data, dict):
                self._resume(connection, data)
            case Op.PRESENCE | Op.VOICE_STATE | Op.REQUEST_MEMBERS if connection.session is None:
                self._close(connection, Close(CloseCode.NOT_AUTHENTICATED, "Not authenticated."))
            case Op.REQUEST_MEMBERS if isinstance(data, dict):
                self._tell_members(connection, data)
            case Op.PRESENCE | Op.VOICE_STATE:
                pass
            case _:
                self._close(connection, Close(CloseCode.UNKNOWN_OPCODE, "Unknown opcode."))

    # --- beginning and going on ---

    def _refuses(self, data: JsonObject) -> Close | None:
        """Why an IDENTIFY is refused."""
        if data.get("token") != self._token:
            return Close(CloseCode.AUTHENTICATION_FAILED, "Authentication failed.")
        intents = data.get("intents")
        if not isinstance(intents, int) or isinstance(intents, bool) or unknown_intents(intents):
            return Close(CloseCode.INVALID_INTENTS, "Invalid intent(s).")
        if Intent(intents) & PRIVILEGED & ~self._granted:
            return Close(CloseCode.DISALLOWED_INTENTS, "Disallowed intent(s).")
        if not isinstance(data.get("properties"), dict):
            return Close(CloseCode.DECODE_ERROR, "Error while decoding payload.")
        shard, shards = _read_shard(data.get("shard"))
        if not 0 <= shard < shards:
            return Close(CloseCode.INVALID_SHARD, "Invalid shard.")
        return None

    def _identify(self, connection: Connection, data: JsonObject) -> None:
        refusal = self._refuses(data)
        if refusal is not None:
            return connection.close(refusal)
        shard, shards = _read_shard(data.get("shard"))
        if not self.starts_left:
            # https://docs.discord.com/developers/events/gateway#rate-limiting: "your session will be invalidated"
            return connection.send(frame(Op.INVALID_SESSION, data=False))
        self.starts_left -= 1
        intents = data["intents"]
        assert isinstance(intents, int)
        number = len(self.sessions) + len(self.ended) + 1
        session = Session(f"session{number:025d}", Intent(intents), shard, shards)
        self.sessions.append(session)
        connection.session = session
        world = self._world
        guilds = [one for one in world.guilds.values() if one.has_bot and session.wants(Event("READY", {}, one.id))]
        waiting: list[Json] = [{"id": str(guild.id), "unavailable": True} for guild in guilds]
        application: JsonObject = {"id": str(world.bot.id), "flags": CONTENT_FLAG if world.content_granted else 0}
        ready: JsonObject = {
            "v": 10,
            "user": wire.user_json(world.bot),
            "guilds": waiting,
            "session_id": session.id,
            "resume_gateway_url": world.origin.replace("http", "ws", 1) + RESUME_PATH,
            "shard": [shard, shards],
            "application": application,
        }
        connection.send(session.put("READY", ready).frame())
        for guild in guilds:
            event = Event("GUILD_CREATE", wire.guild_json(guild, world.bot, whole=True), guild.id)
            if guild.available and session.wants(event):
                connection.send(session.put_event(event).frame())
        return None

    def _resume(self, connection: Connection, data: JsonObject) -> None:
        if data.get("token") != self._token:
            return connection.close(Close(CloseCode.AUTHENTICATION_FAILED, "Authentication failed."))
        session = next((one for one in self.sessions if one.id == data.get("session_id")), None)
        now = self._world.clock.monotonic()
        if session is not None and session.left_at is not None and now - session.left_at > SESSION_SECONDS:
            self._end(session)
            session = None
        if session is None:
            return connection.send(frame(Op.INVALID_SESSION, data=False))
        seq = data.get("seq")
        if not isinstance(seq, int) or not 0 <= seq <= len(session.sent):
            return connection.close(Close(CloseCode.INVALID_SEQ, "Invalid seq."))
        for other in self.open:
            if other.session is session:
                # The old connection has nothing to say any more.
                other.session = None
                other.close(Close(CloseCode.UNKNOWN_ERROR, "Resumed elsewhere."))
        connection.session, session.left_at = session, None
        session.resumes += 1
        repeats, self._repeats = self._repeats, 0
        for dispatch in session.after(max(0, seq - repeats)):
            connection.send(dispatch.frame())
        connection.send(session.put("RESUMED", {"_trace": ["fake"]}).frame())
        return None

    def _tell_members(self, connection: Connection, data: JsonObject) -> None:
        session = connection.session
        assert session is not None
        guild = self._world.guilds.get(snowflake_of(data.get("guild_id")) or 0)
        if guild is None:
            return
        query, ids, limit = data.get("query"), data.get("user_ids"), data.get("limit")
        wanted = {str(one) for one in ids} if isinstance(ids, list) else None
        chosen = [
            one
            for one in guild.members.values()
            if (wanted is None or str(one.user.id) in wanted) and one.user.name.startswith(str(query or ""))
        ]
        most = limit if isinstance(limit, int) and limit > 0 else len(chosen)
        members: list[Json] = [wire.member_json(one) for one in chosen[:most]]
        body: JsonObject = {"guild_id": str(guild.id), "members": members, "chunk_index": 0, "chunk_count": 1}
        if data.get("nonce") is not None:
            body["nonce"] = data["nonce"]
        connection.send(session.put("GUILD_MEMBERS_CHUNK", body).frame())


def _read_shard(value: Json) -> tuple[int, int]:
    if value is None:
        return 0, 1
    if isinstance(value, list) and len(value) == 2:
        shard, shards = value
        if isinstance(shard, int) and isinstance(shards, int):
            return shard, shards
    return -1, 0
