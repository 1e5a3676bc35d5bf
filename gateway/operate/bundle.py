"""``outspoken bundle``: one archive about a turn that can be handed on, and what of it `outspoken replay` reads.

Laws: no secret of the configuration and no word of the conversation is in it. What is said is replaced as by
``outspoken replay --export`` (`agent_core.journal.export`); stories are told without texts; of the configuration, free texts and names of
people are left out, and secrets are said to be set or not. It needs no network and changes nothing but its own file; the gateway
on this machine, if one runs, is asked for its metrics, which hold no chat and no person.
"""

from __future__ import annotations

import io
import os
import platform
import re
import secrets
import tarfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import cast

import orjson
from pydantic import SecretStr

from adapters.platforms import platforms
from agent_core.explain.why import unquoted
from agent_core.failures.errors import UnreadableJournal
from agent_core.journal.export import Head, dump, redacted
from agent_core.ports import SystemClock
from agent_core.store.database.look import look
from agent_core.store.reading import open_reads
from agent_core.store.reads import Reads
from agent_core.store.turns.rows import JournalRow, TurnRow
from agent_core.text.redaction import MASK, Redactor, is_secret_name
from gateway.config.paths import Paths
from gateway.config.reading import redactor_of
from gateway.config.sections import Config
from gateway.explain.story import Explainer, local_zone
from gateway.operate.doctor.machine import certificates, database, disk
from gateway.version import program_version

JOURNAL = "journal.jsonl"
MOST_BYTES = 512 * 1024**2
"""A larger journal in an archive is not unpacked."""
AROUND_MS = 30 * 60_000
"""The states of adapters are told from so long before the turn to so long after it."""
LIBRARIES = ("aiohttp", "alembic", "asyncpg", "openai", "orjson", "pydantic", "sqlalchemy", "uvloop")
"""With those of the platforms."""
FREE_TEXT = frozenset(
    {
        *("system_prompt", "prompt", "prompts", "extra_body", "extra_headers", "headers", "env", "args", "proxy"),
        *("allow", "admins", "people", "approvers", "memory_writers", "chat", "chats", "session", "sessions"),
    }
)
"""Keys whose values may hold people's words, names or passwords: of these it is told how much is there."""
WORDS = """What went wrong in one turn of outspoken {version}, to be looked at by somebody else.

story.txt      what happened, in words
journal.jsonl  the turn's journal, with every letter and digit of what was said replaced; outspoken replay --file THIS_ARCHIVE
troubles.json  its failures, what was tried and whether it helped
adapters.json  how the adapters were doing around that time
config.json    the configuration, without secrets, free texts and people
machine.json   versions, the database's schema, room on the disk
metrics.txt    what the running gateway counted, as it serves it at /metrics; empty of figures if none was running

No word of the conversation and no secret is in it. Names of tools and models, ids, times, lengths and addresses of endpoints are.
"""


NO_METRICS = "# No gateway answered on this machine when this archive was made, so there are no metrics.\n"


class CannotBundle(Exception):
    """It cannot be made; the words say why and what to do."""


class NoExport(Exception):
    """A file is an archive, and holds no journal that can be read; says why."""


async def write(turn: str, to: Path, config: Config, paths: Paths, env: Mapping[str, str], metrics: str = "") -> str:
    """Write the archive, for its owner only; what to say of it. Raises `CannotBundle`, and `CannotOpen` and `StorageUnavailable` of the store.

    `metrics` is what the running gateway serves at ``/metrics``; empty if none runs.
    """
    async with open_reads(config.storage.url or paths.database) as reads:
        row = await reads.turns.one(turn)
        if row is None:
            raise CannotBundle(
                f"There is no turn {turn!r} in the database. outspoken explain tells the turn of any other id."
            )
        files = await _of_turn(reads, row, redactor_of(config))
    files["config.json"] = _json(shown_config(config))
    files["machine.json"] = _json(await _machine(config, paths, env))
    files["metrics.txt"] = metrics or NO_METRICS
    files["README.txt"] = WORDS.format(version=program_version())
    hide = redactor_of(config)
    texts = {name: text if name == JOURNAL else _homeless(hide.redact(text)) for name, text in files.items()}
    try:
        put_new(to, _archive(texts))
    except OSError as error:
        raise CannotBundle(f"{to} cannot be written: {error.strerror}. It must not exist yet.") from error
    return (
        f"Wrote {to}: {', '.join(sorted(texts))}.\nNo secret and no word of the conversation is in it. "
        f"Look at it with: outspoken replay --file {to}"
    )


def _homeless(text: str) -> str:
    """Without the directory that says whose machine it is."""
    try:
        home = Path.home()
    except RuntimeError:  # a user without a name, as containers have them
        return text
    return text if home == Path(home.anchor) else text.replace(str(home), "~")


def put_new(to: Path, data: bytes) -> None:
    """Make a file, for its owner only; if it cannot be written whole, none of it stays. Raises OSError, also if one is there."""
    handle = os.open(to, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
    except BaseException:
        to.unlink(missing_ok=True)
        raise


def export_text(file: Path) -> str:
    """The text of an export: the file's own, or that of the journal in an archive. Raises `OSError`, `NoExport`."""
    data = file.read_bytes()
    try:
        return (_journal_in(data) if data.startswith(b"\x1f\x8b") else data).decode("utf-8")
    except UnicodeDecodeError as error:
        raise NoExport("it is no text, so it is no export of a journal") from error


def _journal_in(data: bytes) -> bytes:
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as archive:
            found = archive.getmember(JOURNAL)
            if found.size > MOST_BYTES:
                raise NoExport(f"its {JOURNAL} is larger than {MOST_BYTES} bytes")
            member = archive.extractfile(found)
            if member is None:
                raise NoExport(f"its {JOURNAL} is no file")
            return member.read()
    except (tarfile.TarError, zlib.error, KeyError, EOFError, OSError) as error:
        raise NoExport(f"it is compressed, and no archive that holds a {JOURNAL}") from error


# ---------------------------------------------------------------------- what is in it


async def _of_turn(reads: Reads, row: TurnRow, redactor: Redactor) -> dict[str, str]:
    journal = await reads.turns.journal(row.turn)
    files = {"troubles.json": "", "adapters.json": ""}
    story = await Explainer(reads, SystemClock().now_ms).turn(row.turn)
    if story is not None:
        files["story.txt"] = story.text(local_zone()) + "\n"
        files["story.json"] = _json(story.body())
    if journal:
        files[JOURNAL] = _export(row, journal)
    troubles = await reads.troubles.by(turn=row.turn)
    files["troubles.json"] = _json([asdict(one) for _, one in reversed(troubles)])
    states = await reads.deliveries.adapter_states(
        row.opened_at - AROUND_MS, (row.closed_at or row.opened_at) + AROUND_MS
    )
    files["adapters.json"] = _json(
        [
            {
                "account": s.account,
                "at": s.at,
                "state": s.state,
                "words": unquoted(redactor.redact(s.words), show_text=False),
            }
            for s in states
        ]
    )
    return files


def _export(row: TurnRow, journal: Sequence[JournalRow]) -> str:
    try:
        rows, parts_at = redacted(journal, secrets.token_bytes(16))
    except UnreadableJournal as error:
        raise CannotBundle(f"The journal cannot be redacted, so nothing is written: {error}.") from error
    return dump(Head(row.turn, program_version(), row.exit or "", redacted=True, parts_at=parts_at), rows)


def shown_config(config: Config) -> dict[str, dict[str, object]]:
    """The configuration for somebody else: values by section and key, of secrets and free texts only whether they are set."""
    sections = cast("dict[str, dict[str, object]]", config.model_dump())
    return {section: {key: _value(key, value) for key, value in keys.items()} for section, keys in sections.items()}


def _value(key: str, value: object) -> object:
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, SecretStr) or is_secret_name(key):
        return "set" if _size(value) else "not set"
    if key in FREE_TEXT:
        return f"{_size(value)} {'characters' if isinstance(value, str) else 'entries'}"
    if isinstance(value, Mapping):
        return {str(name): _value(str(name), one) for name, one in cast("Mapping[object, object]", value).items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_value(key, one) for one in cast("Iterable[object]", value)]
    return re.sub(r"(?<=://)[^/@]*@", f"{MASK}@", re.sub(r"\?.*", "?…", str(value)))


def _size(value: object) -> int:
    if isinstance(value, SecretStr):
        return len(value.get_secret_value())
    return len(cast("list[object]", value)) if hasattr(value, "__len__") else 1


async def _machine(config: Config, paths: Paths, env: Mapping[str, str]) -> dict[str, object]:
    seen = await look(config.storage.url or paths.database)
    looked = (await disk(paths), await database(config, paths, None), await certificates(env))
    return {
        "outspoken": program_version(),
        "python": platform.python_version(),
        "system": platform.platform(),
        "libraries": {name: found for name in _libraries() if (found := _version(name))},
        "database": {"engine": seen.engine, "schema": seen.revision, "newest": seen.newest},
        "looks": [
            {"check": one.check, "level": one.level.value, "what": one.what, "fix": one.fix}
            for look_ in looked
            for one in look_.findings
        ],
    }


def _libraries() -> list[str]:
    return sorted({*LIBRARIES, *(name for one in platforms() for name in one.packages)})


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _json(value: object) -> str:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode() + "\n"


def _archive(texts: Mapping[str, str]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, text in sorted(texts.items()):
            data = text.encode()
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(data), 0o600
            archive.addfile(member, io.BytesIO(data))
    return out.getvalue()
