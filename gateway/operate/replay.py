"""``outspoken replay``: reads a turn's journal from the database or a file, has it decided again, and prints what came of it.

Reading only: it runs beside a gateway as well as without one. What agrees and what parts is decided in `agent_core.journal.replay`.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path

import orjson
from pydantic import ValidationError

from adapters.contract.chat import ChatAddress, Content, Piece, Traits
from adapters.contract.contents import decode, encode
from adapters.contract.platforms import Platform
from adapters.contract.settings import Section
from adapters.delivery.parts import STATUS_BUBBLE, picture
from adapters.platforms import platform_of
from agent_core.failures.errors import NewerRules, UnreadableJournal
from agent_core.journal.export import Head, UnreadableExport, dump, load, redacted
from agent_core.journal.replay import Difference, Mismatch, Parting, Replay, parting, replay
from agent_core.journal.replaywords import (
    compared,
    decision_words,
    difference_words,
    head,
    lines_of,
    parting_words,
    timeline,
    verdict,
)
from agent_core.journal.rows import decode as decoded
from agent_core.jsonvalue import Json
from agent_core.records import dataclass
from agent_core.settings import RULES, TurnSettings
from agent_core.store.deliveries.rows import Delivery
from agent_core.store.reading import open_reads
from agent_core.store.turns.rows import JournalRow, TurnRow
from agent_core.text.redaction import Redactor
from gateway.config.model import Model
from gateway.config.paths import Paths
from gateway.config.reading import redactor_of
from gateway.config.sections import Config, Guardrails, Recovery, Tools
from gateway.operate.bundle import NoExport, export_text, put_new
from gateway.version import program_version

MOST_LINES = 60
MOST_DIFFERENCES = 5


class CannotReplay(Exception):
    """What was asked for cannot be had; the words say why and what to do."""


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    """What was asked for on the command line."""

    turn: str = ""
    file: Path | None = None
    export: Path | None = None
    sets: tuple[str, ...] = ()
    as_json: bool = False
    show_text: bool = False


@dataclass(frozen=True, slots=True)
class Source:
    """A journal, and what else is stored of its turn."""

    name: str
    rows: Sequence[JournalRow]
    exit: str = ""
    """As the turn's own row has it; empty while it is open."""
    deliveries: Sequence[Delivery] = ()
    undone: bool = False
    redacted: bool = False
    parts_at: int = -1


async def run(asked: ReplayRequest, configured: Callable[[], tuple[Config, Paths]], say: Callable[[str], None]) -> bool:
    """Do it, and `say` what came of it; True if nothing differs. A file needs no configuration.

    Raises `CannotReplay`, `CannotOpen` and `StorageUnavailable` of the store, and what reading the configuration raises.
    """
    if bool(asked.turn) == (asked.file is not None):
        raise CannotReplay("Name a turn, or a file with --file (and not both).")
    redactor = Redactor.of(())
    if asked.file is not None:
        source = _from_file(asked.file)
    else:
        config, paths = configured()
        redactor = redactor_of(config)
        source = await _from_database(config, paths, asked.turn)
    if asked.export is not None:
        say(_export(asked.export, source, show_text=asked.show_text))
        return True
    try:
        for row in source.rows[:1]:
            decoded(row.kind, row.body)
    except NewerRules as error:
        raise CannotReplay(
            f"{source.name} was decided by newer rules ({error.rules}) than this program has ({RULES}). "
            "Replay it with the version of outspoken that wrote it, or a later one."
        ) from error
    except UnreadableJournal:
        pass  # which row it is, and why, is told below
    found = replay(source.rows, redacted=source.redacted)
    delivered = _compare_stored(found, source)
    parted = None
    if asked.sets:
        if found.turn.opened is None:
            raise CannotReplay("This journal holds no beginning of a turn, so there are no settings to change.")
        parted = parting(found.moments, changed(found.turn.settings, asked.sets), redacted=source.redacted)
    if asked.as_json:
        say(redactor.redact(_json(found, source, delivered, asked, parted)))
    else:
        say(redactor.redact("\n".join(_lines(found, source, delivered, asked, parted))))
    return not found.differences


# ---------------------------------------------------------------------- where it is read


async def _from_database(config: Config, paths: Paths, turn: str) -> Source:
    async with open_reads(config.storage.url or paths.database) as reads:
        row: TurnRow | None = await reads.turns.one(turn)
        if row is None:
            raise CannotReplay(
                f"There is no turn {turn!r} in the database. A turn's id stands in the logs and in notices."
            )
        journal = await reads.turns.journal(turn)
        deliveries = await reads.deliveries.of(turn)
    if not journal:
        raise CannotReplay(f"The journal of the turn {turn} is {row.removed or 'not kept any more'}.")
    # A turn that goes on while it is read: what was delivered is of a moment later than the journal.
    stored = deliveries if row.exit else ()
    return Source(f"Turn {turn}", journal, row.exit or "", stored, bool(row.undone))


def _from_file(file: Path) -> Source:
    try:
        first, rows = load(export_text(file))
    except (OSError, UnreadableExport, NoExport) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise CannotReplay(f"{file} cannot be read: {why}") from error
    return Source(f"Turn {first.turn}", rows, first.exit, redacted=first.redacted, parts_at=first.parts_at)


def _export(to: Path, source: Source, *, show_text: bool) -> str:
    """Write an export, for its owner only; what to say of it."""
    rows, parts_at, hidden = source.rows, source.parts_at, source.redacted
    if not show_text and not source.redacted:
        try:
            rows, parts_at = redacted(rows, secrets.token_bytes(16))
        except UnreadableJournal as error:
            raise CannotReplay(f"The journal cannot be redacted: {error}. --show-text exports it as it is.") from error
        hidden = True
    turn = source.name.removeprefix("Turn ")
    text = dump(Head(turn, program_version(), source.exit, hidden, parts_at), rows)
    try:
        put_new(to, text.encode())
    except OSError as error:
        raise CannotReplay(f"{to} cannot be written: {error.strerror}. It must not exist yet.") from error
    words = f"Wrote {len(rows)} rows of {source.name} to {to}."
    if not hidden:
        return f"{words} It holds everything that was said, as it was said."
    words += " Letters and digits were replaced; names of tools, models and endpoints were not."
    return f"{words}\n{_parts_words(parts_at)}" if parts_at >= 0 else words


def _parts_words(row: int) -> str:
    return (
        f"The words are gone, and from row {row} on something was decided by them: there the redacted slice "
        "differs from the turn. Only one exported with --show-text is exact."
    )


# ---------------------------------------------------------------------- what else is stored


def _traits_of(platform: Platform, contents: Collection[Content]) -> Traits:
    """What the chat could do when this was stored, as far as it shows in the parts."""
    return Traits(
        drafts=False,
        cards=platform.cards,
        feedback=any(content.feedback for content in contents),
        replies=len(contents) > 1 and all(content.reply_to for content in contents),
    )


def _compare_stored(found: Replay, source: Source) -> str:
    """Compare the turn's own row and its parts in a chat with the fold; what was compared, as a sentence."""
    last = found.moments[-1].seq if found.moments else 0
    code = found.turn.exit.code.value if found.turn.exit is not None else ""
    if source.exit and source.exit != code:
        found.differences.append(Difference(last, Mismatch.EXIT, f"{source.exit}, in the turn's own row", code))
    if not source.deliveries or source.undone or not found.ended:
        return ""
    platform = platform_of(ChatAddress.of(source.deliveries[0].row.surface).platform)
    if platform is None:
        return ""
    cut = platform.pieces()

    def pieces(markdown: str, growing: bool) -> tuple[Piece, ...]:
        return cut(markdown, growing=growing)

    stored = {
        (d.row.bubble, d.row.part): d.row for d in source.deliveries if d.row.bubble != STATUS_BUBBLE and not d.row.gone
    }
    contents = {name: decode(row.want) for name, row in stored.items()}
    reply_to = next((content.reply_to for content in contents.values() if content.reply_to), "")
    turn = source.name.removeprefix("Turn ")
    shown = picture(found.view, turn, pieces, traits=_traits_of(platform, contents.values()), reply_to=reply_to)
    wanted = {(one.bubble, one.part): encode(one.content) for one in shown.wanted}
    for name in sorted({*wanted, *stored}):
        have = encode(contents[name]) if name in contents else None
        if have != wanted.get(name):
            where = f"part {name[1]} of {name[0]}"
            as_stored = (
                f"{where} as it was stored for the chat" if have is not None else f"{where}, which is not stored"
            )
            as_shown = f"{where} by this replay" if name in wanted else "anything that this replay shows"
            found.differences.append(Difference(last, Mismatch.VIEW, as_stored, as_shown))
    return f"Also compared, byte by byte: {len(wanted)} parts as they were stored for the chat ({platform.name})."


# ---------------------------------------------------------------------- other settings


def changed(settings: TurnSettings, sets: Sequence[str]) -> TurnSettings:
    """`settings` with assignments in the configuration's words (``guardrails.no_progress_stop=3``). Raises `CannotReplay`."""
    known = _keys(settings)
    for one in sets:
        name, equals, text = one.partition("=")
        name = name.strip()
        short = [key for key in known if key.partition(".")[2] == name]
        key = name if name in known else short[0] if len(short) == 1 else ""
        if name.rpartition(".")[2] in _LISTENING:
            raise CannotReplay(
                f"{name} says how long the gateway listens. The journal tells what it heard then, not what it would have heard, so a "
                "replay cannot show the difference."
            )
        if not equals or not key:
            raise CannotReplay(f"--set {one}: write key=value with one of these keys: {', '.join(sorted(known))}.")
        settings = _with(settings, key, text.strip())
    return settings


_LISTENING = ("first_content_seconds", "stall_seconds", "remedy_seconds", "connect_seconds")
_OF_THE_TURN: tuple[tuple[str, type[Section]], ...] = (("model", Model), ("tools", Tools))


def _keys(settings: TurnSettings) -> dict[str, str]:
    """The keys of the configuration that a turn's decisions depend on, each with its value in `settings`."""
    found = {"model.attempts": str(settings.ladder.retry + 1)}
    for section, model in _OF_THE_TURN:
        for one in fields(TurnSettings):
            value: object = getattr(settings, one.name)
            if one.name in model.model_fields and isinstance(value, int | float) and one.name not in _LISTENING:
                found[f"{section}.{one.name}"] = str(value)
    ladder, guards = asdict(settings.ladder), asdict(settings.guards)
    found |= {f"recovery.{name}": str(ladder[name]) for name in Recovery.model_fields if name in ladder}
    found |= {f"guardrails.{name}": str(guards[name]) for name in Guardrails.model_fields if name in guards}
    return found


def _with(settings: TurnSettings, key: str, text: str) -> TurnSettings:
    """`settings` with one key changed; the section's own rules are kept, together with the turn's other values."""
    section, _, name = key.partition(".")
    values = {k.partition(".")[2]: v for k, v in _keys(settings).items() if k.startswith(f"{section}.")} | {name: text}
    try:
        match section:
            case "recovery":
                counts = Recovery.model_validate(values).counts(settings.ladder.retry + 1)
                return replace(settings, ladder=counts)
            case "guardrails":
                return replace(settings, guards=Guardrails.model_validate(values).counts())
            case "tools":
                return replace(settings, approval_seconds=Tools.model_validate(values).approval_seconds)
            case _:
                model = Model.model_validate(values)
    except ValidationError as error:
        raise CannotReplay(f"--set {key}: {error.errors()[0]['msg']}.") from error
    if name == "attempts":
        return replace(settings, ladder=replace(settings.ladder, retry=model.attempts - 1))
    numbers: dict[str, float] = {name: getattr(model, name)}
    return replace(settings, **numbers)


def _settings_shown(settings: TurnSettings, sets: Sequence[str]) -> str:
    known = _keys(settings)
    was = [
        f"{key} = {value}"
        for key, value in known.items()
        if any(one.partition("=")[0].strip() in (key, key.partition(".")[2]) for one in sets)
    ]
    return f"With {', '.join(sets)} (the turn had {', '.join(was)}):"


# ---------------------------------------------------------------------- what is printed


def _lines(found: Replay, source: Source, delivered: str, asked: ReplayRequest, parted: Parting | None) -> list[str]:
    out = [head(found, source.name), *lines_of(found, show_text=asked.show_text, most=MOST_LINES), ""]
    out += [compared(found), *([delivered] if delivered else []), *found.notes]
    if source.redacted:
        out.append("This slice is redacted." + (f" {_parts_words(source.parts_at)}" if source.parts_at >= 0 else ""))
    out += [difference_words(one) for one in found.differences[:MOST_DIFFERENCES]]
    if len(found.differences) > MOST_DIFFERENCES:
        out.append(f"… and {len(found.differences) - MOST_DIFFERENCES} more, which may follow from the first.")
    out.append(verdict(found))
    if asked.sets:
        opened_at = found.turn.opened.at if found.turn.opened else 0
        out += ["", _settings_shown(found.turn.settings, asked.sets)]
        if parted is None:
            out.append("Every decision would have been the same.")
        else:
            out += parting_words(parted, opened_at, show_text=asked.show_text)
    return out


def _json(found: Replay, source: Source, delivered: str, asked: ReplayRequest, parted: Parting | None) -> str:
    show = asked.show_text
    body: dict[str, object] = {
        "turn": source.name.removeprefix("Turn "),
        "rows": len(found.moments),
        "exit": found.turn.exit.code.value if found.turn.exit is not None else None,
        "agrees": not found.differences,
        "compared": [compared(found), *([delivered] if delivered else [])],
        "notes": found.notes,
        "differences": [
            {
                "row": d.seq,
                "about": d.about,
                "recorded": d.recorded,
                "replayed": d.replayed,
                "words": difference_words(d),
            }
            for d in found.differences
        ],
        "timeline": [
            {"rows": [line.first, line.last], "at": line.at, "event": line.event, "decisions": line.decisions}
            for line in timeline(found.moments, show_text=show)
        ],
        "redacted": source.redacted,
        "redaction_parts_at": source.parts_at if source.parts_at >= 0 else None,
    }
    if asked.sets:
        body["set"] = list(asked.sets)
        body["parting"] = _parting_json(parted, found, show_text=show)
    return orjson.dumps(body, option=orjson.OPT_INDENT_2).decode()


def _parting_json(parted: Parting | None, found: Replay, *, show_text: bool) -> Json:
    if parted is None:
        return None
    opened_at = found.turn.opened.at if found.turn.opened else 0
    return {
        "row": parted.seq,
        "at": parted.event.at,
        "recorded": [decision_words(effect, show_text=show_text) for effect in parted.recorded],
        "with_this_set": [decision_words(effect, show_text=show_text) for effect in parted.other],
        "words": list(parting_words(parted, opened_at, show_text=show_text)),
    }
