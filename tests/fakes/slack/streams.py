"""Streamed messages: `chat.startStream`, `chat.appendStream`, `chat.stopStream`. No I/O.

https://docs.slack.dev/reference/methods/chat.startStream and what people measured beside it: a stream takes either `markdown_text` or
chunks for all of its life, a call's limit counts for itself and not for the whole, and an open stream can be neither edited nor deleted.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.fakes.common import JsonObject
from tests.fakes.slack import blocks as kit
from tests.fakes.slack import checks
from tests.fakes.slack.agents import read_status, set_session
from tests.fakes.slack.errors import ApiError, bad
from tests.fakes.slack.objects import Message, Stream, StreamMode, StreamState, Task
from tests.fakes.slack.params import Params
from tests.fakes.slack.shapes import as_text
from tests.fakes.slack.world import TEAM, World

MAX_CALL = 12_000
"""Characters of text that one call may bring."""
MAX_FIELD = 256
"""Characters of each field of a task, and of a plan's title."""
TASK_STATES = frozenset({"pending", "in_progress", "complete", "error"})
DISPLAY_MODES = frozenset({"timeline", "plan", "dense"})


@dataclass(slots=True)
class Piece:
    """What one call brings."""

    mode: StreamMode | None = None
    """None if it brings nothing."""
    markdown: str = ""
    plan: str = ""
    tasks: list[Task] = field(default_factory=list[Task])
    blocks: list[JsonObject] = field(default_factory=list[JsonObject])


def read_piece(params: Params) -> Piece:
    """What a call brings.

    Raises:
        ApiError: it is too long, of the wrong form, or comes in both ways.
    """
    text, given = params.text("markdown_text"), params.structure("chunks")
    if text and given is not None:
        raise ApiError("cannot_provide_both_markdown_text_and_chunks")
    if len(text) > MAX_CALL:
        raise ApiError("msg_too_long")
    if given is None:
        return Piece(StreamMode.TEXT, text) if text else Piece()
    if not isinstance(given, list):
        raise ApiError("invalid_chunks")
    piece = Piece(StreamMode.CHUNKS if given else None)
    for chunk in given:
        if not isinstance(chunk, dict):
            raise ApiError("invalid_chunks")
        _read_chunk(chunk, piece)
    if len(piece.markdown) > MAX_CALL:
        raise ApiError("msg_too_long")
    return piece


def _read_chunk(chunk: JsonObject, piece: Piece) -> None:
    match chunk.get("type"):
        case "markdown_text" if isinstance(chunk.get("text"), str):
            piece.markdown += as_text(chunk["text"])
        case "plan_update" if isinstance(chunk.get("title"), str):
            piece.plan = _field(chunk, "title")
        case "task_update" if chunk.get("id") and chunk.get("status") in TASK_STATES:
            details, output = _field(chunk, "details"), _field(chunk, "output")
            task = Task(as_text(chunk["id"]), _field(chunk, "title"), as_text(chunk["status"]), details, output)
            if not task.title:
                raise ApiError("invalid_chunks")
            piece.tasks.append(task)
        case "blocks":
            piece.blocks += kit.checked(chunk.get("blocks"), where="chunks/blocks")
        case _:
            raise ApiError("invalid_chunks")


def _field(chunk: JsonObject, name: str) -> str:
    text = as_text(chunk.get(name))
    if len(text) > MAX_FIELD:
        raise ApiError("msg_too_long")
    return text


def _take(stream: Stream, piece: Piece) -> None:
    if piece.mode is not None and stream.mode is not None and piece.mode is not stream.mode:
        raise ApiError("streaming_mode_mismatch")
    stream.mode = stream.mode or piece.mode
    stream.markdown += piece.markdown
    stream.plan = piece.plan or stream.plan
    stream.final_blocks += piece.blocks
    for task in piece.tasks:
        before = stream.tasks.get(task.id)
        # Title and status replace what was there, details and output are added to it.
        details, output = (before.details, before.output) if before else ("", "")
        stream.tasks[task.id] = Task(task.id, task.title, task.status, details + task.details, output + task.output)
    stream.appends += piece.mode is not None


def start(world: World, params: Params) -> JsonObject:
    """https://docs.slack.dev/reference/methods/chat.startStream: in a thread only; outside of direct messages for somebody by name."""
    (name,) = params.required("channel")
    params.passed("icon_emoji", "icon_url", "username")
    piece = read_piece(params)
    channel = checks.writable_channel(world, name)
    user_id, team_id = params.text("recipient_user_id"), params.text("recipient_team_id")
    if not checks.is_dm(channel):
        if not team_id:
            raise ApiError("missing_recipient_team_id")
        if not user_id:
            raise ApiError("missing_recipient_user_id")
    if team_id and team_id != TEAM:
        raise ApiError("team_not_found")
    if user_id:
        checks.known_user(world, user_id)
    if params.text("task_display_mode") not in DISPLAY_MODES | {""}:
        raise bad("must be timeline, plan or dense", "task_display_mode")
    root = checks.required_thread(world, channel, params)
    stream = Stream(world.clock.monotonic())
    _take(stream, piece)
    message = Message(channel, world.new_ts(), world.bot, stream.markdown, thread_ts=root.ts, stream=stream)
    world.add(message)
    return {"channel": channel.id, "ts": message.ts}


def _open_stream(world: World, params: Params) -> tuple[Message, Stream]:
    message = checks.message_of_app(world, params, "message_not_owned_by_app")
    if message.stream is None or not world.streaming(message):
        raise ApiError("message_not_in_streaming_state")
    return message, message.stream


def append(world: World, params: Params) -> JsonObject:
    """https://docs.slack.dev/reference/methods/chat.appendStream; after a press on Stop the answer is `stopped_by_user`."""
    piece = read_piece(params)
    if piece.mode is None:
        raise ApiError("no_text")
    stopped = checks.message_of_app(world, params, "message_not_owned_by_app").stream
    if stopped is not None and stopped.state is StreamState.STOPPED:
        raise ApiError("stopped_by_user")
    message, stream = _open_stream(world, params)
    _take(stream, piece)
    message.text = stream.markdown
    world.changed()
    return {"channel": message.channel.id, "ts": message.ts}


def stop(world: World, params: Params) -> JsonObject:
    """https://docs.slack.dev/reference/methods/chat.stopStream"""
    piece = read_piece(params)
    given = params.structure("blocks")
    blocks = [] if given is None else kit.checked(given)
    stored = checks.metadata(params)
    status = read_status(params.text("session_status")) if params.has("session_status") else None
    message, stream = _open_stream(world, params)
    _take(stream, piece)

    def change() -> None:
        stream.state = StreamState.DONE
        stream.final_blocks += blocks
        message.text = stream.markdown
        message.metadata = stored or message.metadata

    earlier = len(message.earlier)
    world.edit(message, change, world.bot)
    # The end of a stream is no edit in the eyes of a person.
    del message.earlier[earlier:]
    message.edited_ts = None
    if status is not None:
        set_session(world, message.channel, message.root_ts, status)
    return {"channel": message.channel.id, "ts": message.ts, "message": world.message_json(message)}
