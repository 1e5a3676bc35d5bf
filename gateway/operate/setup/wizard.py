"""``outspoken setup``: asks for what cannot be computed, tries it, and only then writes it.

Everything goes into the file ``.env`` beside the configuration file, which wins over that file and which only its owner can read:
so the configuration file keeps its comments and its keys, and no secret gets into it. A service is written when it is complete;
leaving in the middle leaves what was there.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TypeVar

from pydantic import SecretStr
from pydantic_core import PydanticCustomError

from adapters.checks.findings import Finding, Seen, Severity
from adapters.contract.platforms import Key, SetupResult
from adapters.contract.settings import sendable
from agent_core.records import dataclass
from gateway.config.keys import KeyDoc, describe
from gateway.config.reading import Loaded, survey
from gateway.config.sections import Config
from gateway.config.sources import UnreadableSource, read_text
from gateway.operate.setup.givenup import GivenUp
from gateway.operate.setup.prompts import Nobody, Prompts
from gateway.operate.setup.services import Given, Service, services

T = TypeVar("T", bound=Seen)
U = TypeVar("U")

PROBLEM, USAGE = 1, 2
TRIES = 5
BLOCKING = frozenset({"token", "app_token", "reach", "tls", "key", "name", "answers"})
"""Findings with these names (behind the dot) mean that a value is not good, or could not be tried: it is not written."""


@dataclass(slots=True)
class Wizard:
    """One run of ``setup``."""

    prompts: Prompts
    file: Path
    """The configuration file, which may be missing."""
    env: Mapping[str, str]
    given: Given
    config: Config = field(init=False)
    status: int = 0
    written: dict[Key, str] = field(default_factory=dict[Key, str], repr=False)

    def __post_init__(self) -> None:
        self.config = survey(self.file, self.env).config

    @property
    def secrets_file(self) -> Path:
        """Where everything is written."""
        return self.file.parent / ".env"

    # ------------------------------------------------------------------ the whole

    def run(self, names: Sequence[str]) -> int:
        """Go through the services; the exit status."""
        at: Sequence[str] = names
        try:
            for service in self._chosen(names):
                at = (service.name,)
                self._service(service, sure=bool(names))
        except Nobody as missing:
            self.prompts.say(self._nobody(str(missing), at))
            self.status = USAGE
        if self.written:
            self._farewell()
        elif not self.status:
            self.prompts.say("Nothing was changed.")
        return self.status

    def _chosen(self, names: Sequence[str]) -> list[Service]:
        if names:
            return [services()[name] for name in names]
        if self.prompts.asks:
            return [*services().values()]
        chosen = [service for service in services().values() if any(self.value(*key) for key in service.keys)]
        if not chosen:
            raise Nobody("what to set up")
        return chosen

    def _nobody(self, question: str, names: Sequence[str]) -> str:
        services_meant = [services()[name] for name in names] or [*services().values()]
        variables = [self.doc(*service.keys[0]).env[-1] for service in services_meant]
        what = question.strip().rstrip(": ").partition(" (")[0]
        end = "" if what.endswith((".", "?")) else "."
        why = "nothing says" if not self.prompts.asks else "standard input is closed, so nobody can be asked:"
        return (
            f"{why[:1].upper()}{why[1:]} {what}{end}\n"
            f"Put it into the environment and run it with --yes, for example: {variables[0]}=… outspoken setup {services_meant[0].name} --yes"
        )

    def _service(self, service: Service, *, sure: bool) -> None:
        """One service, from the question whether it is wanted to the file."""
        if not sure and self.prompts.asks:
            default = service.name == "model" and self.config.model.rehearsal
            if not self.prompts.confirm(f"\n{service.question}", default=default):
                return
        try:
            wanted = service.ask(self, self.config)
        except GivenUp as reason:
            self.prompts.say(f"{service.title}: {reason}")
            self.status = PROBLEM
            return
        if wanted is not None:
            self._write(service, wanted)

    def _farewell(self) -> None:
        self.prompts.say(f"\nWritten to {self.secrets_file}, which only you can read.")
        overruled = [
            name
            for (section, key), value in self.written.items()
            for name in self.doc(section, key).env
            if self.env.get(name, "").strip() not in ("", value)
        ]
        if overruled:
            self.prompts.say(f"In this environment {', '.join(overruled)} says something else, and wins over the file.")
        self.prompts.say(
            "Start the gateway with: outspoken run (restart it if it runs). outspoken doctor looks at everything again."
        )

    # ------------------------------------------------------------------ for the services (`adapters.contract.platforms.Asker`)

    @property
    def asks(self) -> bool:
        """Somebody can be asked."""
        return self.prompts.asks

    def say(self, words: str) -> None:
        """Tell something."""
        self.prompts.say(words)

    def question(self, words: str, default: str = "") -> str:
        """One line that somebody types."""
        return self.prompts.ask(words, default)

    def doc(self, section: str, key: str) -> KeyDoc:
        """What is known of a key."""
        return next(doc for doc in describe() if (doc.section, doc.key) == (section, key))

    def value(self, section: str, key: str) -> str:
        """What an option or the environment gives for a key; empty if nothing does."""
        if option := self.given.values.get((section, key), ""):
            return option
        return next((found for name in self.doc(section, key).env if (found := self.env.get(name, "").strip())), "")

    def look(self, work: Awaitable[U]) -> U:
        """Try something with the other side."""

        async def worked() -> U:
            return await work

        return asyncio.run(worked())

    def secret(self, section: str, key: str, question: str, present: SecretStr | None, *, needed: bool = True) -> str:
        """A secret: given, typed, or the one that is there already. Empty if there is to be none."""
        if value := self.value(section, key):
            return self._good(section, key, value)
        kept = present.get_secret_value() if present is not None else ""
        if not self.prompts.asks:
            if not kept and needed:
                raise Nobody(f"what {self.doc(section, key).env[-1]} is")
            return kept
        hint = " (empty keeps the one that is set)" if kept else ""
        while True:
            typed = self.prompts.ask(f"{question}{hint}", secret=True) or kept
            try:
                return sendable(SecretStr(typed)).get_secret_value() if typed else ""
            except PydanticCustomError as error:
                self.prompts.say(f"That {error.message()}.")

    def _good(self, section: str, key: str, value: str) -> str:
        """A secret that an option or the environment gives, if it can be sent. Raises `GivenUp`."""
        try:
            return sendable(SecretStr(value)).get_secret_value()
        except PydanticCustomError as error:
            raise GivenUp(f"{self.doc(section, key).env[-1]} {error.message()}; nothing was written.") from error

    def tried(self, attempt: Callable[[], T | None]) -> T | None:
        """Repeat `attempt` until its values are good, or the person gives up (it gives None). Raises `GivenUp`."""
        for _ in range(TRIES):
            seen = attempt()
            if seen is None:
                return None
            self.tell(seen.findings)
            if not any(blocks(one) for one in seen.findings):
                return seen
            if not self.prompts.asks:
                raise GivenUp("nothing was written.")
        raise GivenUp("nothing was written; it can be tried again at any time.")

    def until(self, seen: T, name: str, again: Callable[[], Awaitable[T]]) -> T:
        """Let the person mend what a finding of this name says, and look again, as often as they like."""
        while any(one.check == name and one.level is Severity.PROBLEM for one in seen.findings):
            if (
                not self.prompts.asks
                or self.prompts.ask("Press Enter when it is done (or write skip)").lower() == "skip"
            ):
                self.status = PROBLEM
                break
            seen = self.look(again())
            self.tell(seen.findings)
        return seen

    def tell(self, findings: Sequence[Finding]) -> None:
        """Say what was found, but what a person need not know now."""
        from gateway.operate.doctor.looks import lines_of

        for one in findings:
            for line in lines_of(one):
                self.prompts.say(line)

    # ------------------------------------------------------------------ writing

    def _write(self, service: Service, wanted: SetupResult) -> None:
        changes = self._changes(wanted)
        new = {name: value for name, value in changes.items() if value is not None}
        others = {name: value for name, value in self.env.items() if name not in changes}
        gone = dict.fromkeys(changes, "")  # an empty one hides what `.env` has until now
        then = survey(self.file, {**others, **gone, **new})
        wrong = [one for one in then.problems if one not in survey(self.file, others).problems]
        if wrong:
            self._failed(service, "; ".join(str(one) for one in wrong))
            return
        if still := _still_said(then, wanted):
            self._failed(service, f"{still} Take it out there first: what was tried here had none.")
            return
        try:
            before = read_text(self.secrets_file) if self.secrets_file.exists() else ""
            put_env(self.secrets_file, edited_env(before, changes))
        except (UnreadableSource, ValueError) as error:
            self._failed(service, str(error))
        except OSError as error:
            why = (error.strerror or type(error).__name__).lower()
            self._failed(
                service, f"{self.secrets_file} cannot be written: {why}. Let this user write there, or use --config."
            )
        else:
            self.config = then.config
            self.written |= wanted.values
            for words in wanted.words:
                self.prompts.say(words)

    def _failed(self, service: Service, why: str) -> None:
        self.prompts.say(f"{service.title}: nothing was written. {why}")
        self.status = PROBLEM

    def _changes(self, wanted: SetupResult) -> dict[str, str | None]:
        """Each value under the name that other programs use; its other names are taken out, because they would win."""
        changes: dict[str, str | None] = {}
        for (section, key), value in wanted.values.items():
            doc = self.doc(section, key)
            also = self.doc(section, doc.file_key).env if doc.file_key else ()
            changes |= dict.fromkeys((*doc.env, *also))
            changes[doc.env[-1]] = value or None
        return changes


def _still_said(then: Loaded, wanted: SetupResult) -> str:
    """That another place goes on to say what was left empty here, such as a key, which would go to an address that it was not given for. Pure."""
    for (section, key), value in wanted.values.items():
        if not value and getattr(getattr(then.config, section), key):
            return f"[{section}] {key} is still set by {then.origins.get((section, key), 'another place')}."
    return ""


def blocks(finding: Finding) -> bool:
    """Whether a finding keeps a value from being written."""
    return finding.level is Severity.PROBLEM and finding.check.partition(".")[2] in BLOCKING


# --- the file .env: values are set or taken out, every other line stays as it is ---

_NAME = re.compile(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=")
_PLAIN = re.compile(r"[A-Za-z0-9_./:@%+,~-]+")
ENV_HEAD = "# Written by outspoken setup. Holds secrets: keep it to yourself (chmod 600).\n"


def quoted(value: str) -> str:
    """A value as it stands behind ``=``. Raises ValueError for one that no line can hold."""
    if not value.isprintable():
        raise ValueError("A value must be one line of printable characters.")
    if _PLAIN.fullmatch(value):
        return value
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def edited_env(text: str, changes: Mapping[str, str | None]) -> str:
    """`text` with each name set to its value, where it stood or at the end; None takes it out."""
    out: list[str] = []
    left = dict(changes)
    for line in text.splitlines(keepends=True):
        found = _NAME.match(line)
        name = found.group(1) if found else ""
        if name not in changes:
            out.append(line)
        elif (value := left.pop(name, None)) is not None:
            out.append(f"{name}={quoted(value)}\n")
    new = [f"{name}={quoted(value)}\n" for name, value in left.items() if value is not None]
    if new and out and not out[-1].endswith(("\n", "\r")):
        out.append("\n")
    head = [ENV_HEAD] if new and not out else []
    return "".join([*out, *head, *new])


def put_env(path: Path, text: str) -> None:
    """Write the file whole, for its owner only. Raises OSError. A link stays a link; an owner stays the owner, where that is allowed."""
    target = Path(os.path.realpath(path))
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = target.with_name(f"{target.name}.{secrets.token_hex(4)}.part")
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            if target.exists():
                before = target.stat()
                with contextlib.suppress(PermissionError):
                    os.fchown(file.fileno(), before.st_uid, before.st_gid)
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        part.replace(target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
