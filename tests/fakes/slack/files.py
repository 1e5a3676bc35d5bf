"""Files of the app: announced, uploaded, then shared. No I/O; the bytes come and go in `server.py`.

https://docs.slack.dev/messaging/working-with-files#upload
"""

from __future__ import annotations

import mimetypes
from dataclasses import replace

from tests.fakes.common import Json, JsonObject
from tests.fakes.slack import checks
from tests.fakes.slack.errors import ApiError, bad
from tests.fakes.slack.objects import Message, StoredFile
from tests.fakes.slack.params import Params
from tests.fakes.slack.shapes import as_objects, as_text
from tests.fakes.slack.world import World


def store(
    world: World, name: str, data: bytes, user: str, *, mime_type: str = "", size_bytes: int = -1, subtype: str = ""
) -> StoredFile:
    """Keep a file."""
    kind = mime_type or mimetypes.guess_type(name)[0] or "application/octet-stream"
    size = len(data) if size_bytes < 0 else size_bytes
    file = StoredFile(world.new_id("F"), name, name, kind, data, user, world.unix(), size, subtype)
    world.files[file.id] = file
    return file


def get_upload_url(world: World, params: Params) -> JsonObject:
    """https://docs.slack.dev/reference/methods/files.getUploadURLExternal"""
    name, _ = params.required("filename", "length")
    params.passed("alt_txt", "snippet_type")
    length = params.integer("length", 0)
    if length <= 0:
        raise bad("must be more than 0", "length")
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    file = StoredFile(world.new_id("F"), name, name, kind, b"", world.bot.id, world.unix(), length)
    world.uploads[file.id] = file
    return {"upload_url": f"{world.origin()}/upload/v1/{file.id}", "file_id": file.id}


def receive(world: World, file_id: str, data: bytes) -> bool:
    """The bytes of an announced file; False if it was not announced, or with another length."""
    file = world.uploads.get(file_id)
    if file is None or file.size_bytes != len(data):
        return False
    world.uploads[file_id] = replace(file, data=data)
    return True


def complete_upload(world: World, params: Params) -> JsonObject:
    """https://docs.slack.dev/reference/methods/files.completeUploadExternal: one message with all files, if a channel is named."""
    params.required("files")
    given = as_objects(params.structure("files"))
    comment = params.text("initial_comment")
    names = [name for name in [params.text("channel_id"), *params.names("channels")] if name]
    channels = [checks.writable_channel(world, name) for name in names]
    roots = [checks.thread(world, channel, params.text("thread_ts")) for channel in channels]
    files: list[StoredFile] = []
    for one in given:
        file = world.uploads.get(as_text(one.get("id")))
        if file is None or not file.data:
            raise ApiError("file_not_found")
        files.append(replace(file, title=as_text(one.get("title")) or file.name))
    if not files:
        raise bad("must have at least one item", "files")
    for file in files:
        del world.uploads[file.id]
        world.files[file.id] = file
    for channel, root in zip(channels, roots, strict=True):
        thread_ts = root.ts if root else None
        world.add(Message(channel, world.new_ts(), world.bot, comment, thread_ts=thread_ts, files=[*files]))
    shown: list[Json] = [world.file_json(file) for file in files]
    return {"files": shown}


def info(world: World, params: Params) -> JsonObject:
    """https://docs.slack.dev/reference/methods/files.info"""
    file = world.files.get(params.required("file")[0])
    if file is None:
        raise ApiError("file_not_found")
    params.passed("count", "cursor", "limit", "page")
    return {"file": world.file_json(file)}
