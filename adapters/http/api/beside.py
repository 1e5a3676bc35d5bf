"""What an answer has beside its text and calls, in the fields of chat completions: pictures, sound, sources, probabilities, thoughts.

The data of pictures and sound lies in files, which are read here for the answer and nowhere else (`with_data`); all else is pure.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import structlog

from adapters.contract.base import Ended
from adapters.http.api.asked import ApiRequest
from adapters.http.api.facts import facts_of
from agent_core.jsonvalue import Json
from agent_core.model.made import DATA, FILES, LEFT_OUT

log = structlog.get_logger("api")
_OPAQUE = ("reasoning_details", "thinking_blocks")


async def with_data(ended: Ended) -> Ended:
    """The same with the data of what it made, as far as that is still kept."""
    files = ended.made.get(FILES)
    if not isinstance(files, list):
        return ended
    found: list[Json] = [await _with_data(entry) if isinstance(entry, dict) else entry for entry in files]
    return replace(ended, made={**ended.made, FILES: found})


async def _with_data(entry: dict[str, Json]) -> Json:
    path = entry.get("file")
    if not isinstance(path, str):
        return entry
    try:
        data = await asyncio.to_thread(lambda: b64encode(Path(path).read_bytes()).decode())
    except OSError as error:
        log.info("api.media_gone", error=type(error).__name__)
        return entry
    return {**entry, DATA: data}


def made_fields(ended: Ended) -> dict[str, Json]:
    """The fields of a message for what was made; what is not kept any more is left out, and `all_facts` names it."""
    images: list[Json] = []
    fields: dict[str, Json] = {}
    for entry in _files(ended):
        data, url = entry.get(DATA), entry.get("url")
        if entry.get("kind") == "image":
            where = f"data:{entry.get('mime')};base64,{data}" if isinstance(data, str) else url
            if isinstance(where, str):
                images.append({"type": "image_url", "index": len(images), "image_url": {"url": where}})
        elif isinstance(data, str):
            known = {"id": "", "expires_at": 0, "transcript": ""}
            fields["audio"] = {**known, **{name: entry[name] for name in known if name in entry}, DATA: data}
    if images:
        fields["images"] = images
    if isinstance(sources := ended.made.get("annotations"), list):
        fields["annotations"] = sources
    return fields


def logprobs_of(ended: Ended) -> dict[str, Json] | None:
    """The probabilities of its words, if they were asked for and told."""
    found = {name: ended.made.get(f"logprobs.{name}") for name in ("content", "refusal")}
    return found if any(found.values()) else None


def all_facts(ended: Ended, asked: ApiRequest, session: str = "") -> dict[str, Json]:
    """The ``outspoken`` object of an end, with what of the wishes or of the reply is not there. `session`: that of a conversation without a name."""
    left_out: list[Json] = [*asked.left_out, *_left_out_of(ended)]
    facts = facts_of(ended, asked.session)
    if (where := asked.session or session) and any(one.path for one in ended.view.bubbles):
        from adapters.http.sessions.sentfiles import sent_files

        facts["files"] = sent_files(ended, where)
    return {**facts, "left_out": left_out} if left_out else facts


def _left_out_of(ended: Ended) -> list[Json]:
    left_out = ended.made.get(LEFT_OUT)
    lost = [entry.get("kind") for entry in _files(ended) if entry.get(DATA) is None and entry.get("url") is None]
    return [*ended.summary.unsent, *(left_out if isinstance(left_out, list) else []), *lost]


def opaque_thoughts(ended: Ended) -> dict[str, Json]:
    """What of the thoughts a client hands back with the conversation, as their provider spells it."""
    return {name: ended.thoughts[name] for name in _OPAQUE if ended.thoughts.get(name)}


def of_call(ended: Ended, call: str) -> Mapping[str, Json]:
    """The same of one call: its signature."""
    calls = ended.thoughts.get("calls")
    found = calls.get(call) if isinstance(calls, dict) else None
    return found if isinstance(found, dict) else {}


def _files(ended: Ended) -> list[dict[str, Json]]:
    files = ended.made.get(FILES)
    return [entry for entry in files if isinstance(entry, dict)] if isinstance(files, list) else []
