"""``python -m tests.clients.matrix``: programs of others against every fault of `faults`, each in every way in which a person calls it; prints
what came of each, and how many were true. Names of programs and ``--fault NAME`` run only those.

Theory. A program tells those who use it of a failure in its own way: an error of some type, with a status; a finish reason; a fallback that is asked
instead. That is true if it never takes a failure for an answer, never waits for ever, and never has the turn run twice. Where something was
produced, what is missing is told with it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sqlite3
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog

from adapters.http.api.answering import HELD_SECONDS
from tests.clients.faults import FAULTS, Fault, Wanted
from tests.clients.provider import ORDERED, Provider, provider
from tests.serving import served

PROGRAMS = Path(__file__).with_name("programs")
PYTHON = Path(sys.prefix) / "clients" / "bin" / "python"
HELLO, WEATHER, ADA = "Hello, you.", "It is sunny in Paris.", {"name": "Ada", "age": 36}
SECOND = "from the second"
WAYS: Mapping[str, Sequence[str]] = {
    "openai_sdk": (
        "chat", "chat stream", "chat tools", "chat data",
        "responses", "responses stream", "responses helper", "responses tools", "responses data",
    ),
    "agents_sdk": (
        "chat", "chat stream", "chat tools", "chat data", "responses", "responses stream", "responses tools", "responses data",
    ),
    "pydantic_ai_agent": (
        "chat", "chat stream", "chat tools", "chat data", "chat fallback",
        "responses", "responses stream", "responses tools", "responses data", "responses fallback",
    ),
    "langchain_chat": (
        "chat", "chat stream", "chat tools", "chat data", "chat fallback",
        "responses", "responses stream", "responses tools", "responses data", "responses fallback",
    ),
    "instructor_client": ("chat data", "chat data json", "chat data stream", "responses data"),
    "litellm_client": ("chat", "chat stream", "chat tools", "chat fallback", "responses", "responses stream"),
    "llm_command": ("chat", "chat stream", "chat tools", "chat data"),
}  # fmt: skip
"""How each program is called."""
BEGUN_EACH_TIME = "llm_command"
"""It is started for each call, which takes a second; so it meets fewer faults each time."""
ENDED_WELL = (None, "stop", "completed")
ASK_AGAIN = (("litellm_client", "chat fallback"),)
"""Whoever uses these has them ask so often, whatever the answer."""
LONGEST_SECONDS = 120.0


@dataclass(frozen=True)
class Case:
    """One fault, met in one way by one program."""

    program: str
    way: str
    fault: str
    mark: str

    @property
    def words(self) -> str:
        asked = "what is the weather?" if "tools" in self.way else "who?" if "data" in self.way else "say hello"
        return f"{asked} [{self.fault}#{self.mark}]"

    def __str__(self) -> str:
        return f"{self.program}, {self.way}: {self.fault}"


def cases(programs: Iterable[str] = WAYS, faults: Iterable[str] = FAULTS) -> list[Case]:
    """All that make sense."""
    found: list[Case] = []
    for fault in faults:
        only = FAULTS[fault].only
        for program in programs:
            for way in WAYS[program]:
                brings = (
                    "tools" if "tools" in way or (program == "instructor_client" and "json" not in way) else "plain"
                )
                if not only or only == brings:
                    found.append(Case(program, way, fault, f"{program[:4]}{len(found)}x"))
    return found


def few(program: str) -> list[Case]:
    """Some of those of a program, always the same: those of all programs together have every fault."""
    found = cases()
    by_fault = {
        fault: [case for case in found if case.fault == fault and (not number % 8 or case.program != BEGUN_EACH_TIME)]
        for number, fault in enumerate(FAULTS)
    }
    chosen = [each[(11 * number) % len(each)] for number, each in enumerate(by_fault.values())]
    return [case for case in chosen if case.program == program]


# ---------------------------------------------------------------------- what is true


def complaint(case: Case, outcome: Mapping[str, Any], turns: Sequence[str], seconds: float) -> str:
    """What is not true of an outcome; empty if all is. `turns` are marks of what was asked in each turn."""
    if seconds > LONGEST_SECONDS:
        return f"it took {seconds:.0f} s"
    if not turns:
        return "it was never asked"
    late = "stream" in case.way and seconds > HELD_SECONDS
    if said := _untold(case, FAULTS[case.fault], outcome, late=late):
        return said
    again = len(turns) - len(set(turns))
    return f"{again + 1} times the same turn" if again and (case.program, case.way) not in ASK_AGAIN else ""


def _untold(case: Case, fault: Fault, outcome: Mapping[str, Any], *, late: bool) -> str:
    """`late`: on a busy machine the head of a stream may have gone before the failure, which is an event of it then (docs/api.md)."""
    error, status = outcome.get("error"), outcome.get("status")
    text, finish, data = str(outcome.get("text") or ""), outcome.get("finish"), outcome.get("data")
    match fault.wanted:
        case Wanted.WHOLE:
            wanted: object = WEATHER if "tools" in case.way else ADA if "data" in case.way else HELLO
            found = data if "data" in case.way else text
            return "" if not error and found == wanted and finish in ENDED_WELL else "not the answer"
        case Wanted.FAILED if "fallback" in case.way:
            return "" if text == SECOND else "the fallback was not asked"
        case Wanted.FAILED if late:
            return "" if error or finish not in ENDED_WELL else "a failure passes for an answer"
        case Wanted.FAILED:
            if not error:
                return "a failure passes for an answer"
            return "" if status in (None, fault.status) else f"status {status} instead of {fault.status}"
        case Wanted.REFUSED if text:
            return ""  # in its own words, or in the gateway's
        case Wanted.PART | Wanted.REFUSED:
            told = (
                error or finish not in ENDED_WELL or "[outspoken]" in text or outcome.get("refusal") or text == SECOND
            )
            if "data" in case.way:  # some ask again by themselves, in other words, until it fits
                return "" if told or data in (None, ADA) else "a part passes for the whole"
            return "" if told else "a part passes for the whole"


# ---------------------------------------------------------------------- running


@dataclass
class Rig:
    """A gateway in front of the provider."""

    url: str
    database: Path
    provider: Provider

    def turns(self) -> dict[str, list[str]]:
        """What was asked in the turns of each mark."""
        found: dict[str, list[str]] = defaultdict(list)
        with closing(sqlite3.connect(f"file:{self.database}?mode=ro", uri=True)) as database:
            for (body,) in database.execute("SELECT body FROM inbox"):
                told = json.loads(body)
                digest = told.get("digest") or json.dumps(told.get("input"))
                for mark in {mark for _, mark in ORDERED.findall(body.decode())}:
                    found[mark].append(digest)
        return found


@asynccontextmanager
async def rig(folder: Path, **more: str) -> AsyncGenerator[Rig]:
    """A gateway as it is installed, but for short limits."""
    async with provider() as upstream:
        env = {
            "OUTSPOKEN_MODEL__BASE_URL": upstream.url,
            "OUTSPOKEN_MODEL__API_KEY": "k",
            "OUTSPOKEN_MODEL__NAME": "served",
            "OUTSPOKEN_SERVER__ERRORS": "auto",
            **more,
        }
        async with served(folder, env) as up:
            yield Rig(f"{up.url}/v1", next(folder.rglob("*.db")), upstream)


async def outcomes(
    program: str, url: str, asked: Sequence[str] = (), faults: Sequence[Case] = (), model: str = "served"
) -> dict[str, dict[str, Any]]:
    """What came of cases of a program, and of faults that it meets."""
    quiet = {name: value for name, value in os.environ.items() if not name.endswith("_PROXY")}
    process = await asyncio.create_subprocess_exec(
        PYTHON, PROGRAMS / f"{program}.py", url, model, *asked, *(["-"] if faults else []),
        env=quiet | {"PYTHONDONTWRITEBYTECODE": "", "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    lines = "\n".join(json.dumps([case.way, case.words]) for case in faults)
    try:
        async with asyncio.timeout(300 + 10 * len(faults)):
            said, complained = await process.communicate(lines.encode())
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, complained.decode()[-3000:]
    found = [json.loads(line) for line in said.decode().splitlines() if line.startswith('{"case"')]
    return {line["case"]: line for line in found}


def judged(
    up: Rig, faults: Sequence[Case], lines: Mapping[str, dict[str, Any]]
) -> dict[Case, tuple[str, dict[str, Any]]]:
    """Each fault with what is not true of it, and what was seen."""
    turns, found = up.turns(), {case: lines[f"{case.way}|{case.words}"] for case in faults}
    return {
        case: (complaint(case, line["outcome"], turns[case.mark], line["seconds"]), line)
        for case, line in found.items()
    }


async def main() -> None:
    """Entry point; exits with 1 if anything is not true."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", nargs="*", default=list(WAYS))
    parser.add_argument("--fault", action="append")
    parser.add_argument("--all", action="store_true", help="show what came of each")
    asked = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    true: Counter[str] = Counter()
    untrue: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        async with rig(Path(folder)) as up:
            for program in asked.program:
                faults = cases([program], asked.fault or FAULTS)
                for case, (said, line) in judged(up, faults, await outcomes(program, up.url, faults=faults)).items():
                    (untrue if said else true)[program] += 1
                    if said or asked.all:
                        print(
                            f"{case}: {said or 'true'}: {json.dumps(line['outcome'])[:300]} {line['seconds']} s",
                            flush=True,
                        )
                print(f"== {program}: {true[program]} true, {untrue[program]} not", flush=True)
    sys.exit(bool(untrue))


if __name__ == "__main__":
    asyncio.run(main())
