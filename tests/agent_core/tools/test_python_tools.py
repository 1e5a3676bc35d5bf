"""Tools that operators write in Python: what is a tool, what is told of what is none, and the truth about a call that comes to no good end."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.jsonvalue import Json
from agent_core.packages import look_again
from agent_core.ports import SystemClock
from agent_core.toolbox import LONGEST_SECONDS, MARK, SECONDS, effect, keyed, pure
from agent_core.tools.base import DoubtCause, EffectClass, ToolContext, ToolOutcome, ToolSpec, ToolStatus
from agent_core.tools.builtin import tool_names
from agent_core.tools.python.described import described
from agent_core.tools.python.sources import ToolSource
from agent_core.tools.python.tool import BroughtTools, PythonTool, confines, failed, outcome_of, python_tools
from agent_core.tools.registry import DOUBT, ArgumentsUnreadable, Runnable, ToolRegistry
from agent_core.workers.pool import Workers, WorkerTrouble

PAGE = Path(__file__).parents[3] / "docs" / "tools.md"
EVERYTHING = '''
import asyncio, datetime, enum, os, signal, subprocess, sys, time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, Optional
from agent_core.toolbox import Call, NotDone, effect, keyed, pure

class Size(enum.Enum):
    SMALL = "small"
    LARGE = "large"

@dataclass
class Place:
    name: str
    zip: int = 0

@pure()
def kinds(a: int, b: Optional[str] = None, c: Size = Size.SMALL, d: list[Place] = [], e: datetime.date | None = None) -> dict:
    """All kinds."""
    return {"a": a, "c": c, "d": d, "e": e}

@keyed()
async def book(call: Call, what: Annotated[str, "what to book"]) -> str:
    """Book it."""
    call.progress("asking")
    await asyncio.sleep(0)
    Path("booked").write_text(what)
    return f"{call.key} {call.again} {Path.cwd() == call.workspace}"

@pure(seconds=0.5)
def hang() -> str:
    """Hang."""
    while True: pass

@effect(seconds=0.5)
def hang_in_the_middle() -> str:
    """Hang after something."""
    Path("done").touch()
    time.sleep(60)
    return ""

def die() -> None:
    """Die."""
    os.kill(os.getpid(), signal.SIGKILL)

@pure()
def die_reading() -> None:
    """Die."""
    os.kill(os.getpid(), signal.SIGKILL)

def leave() -> None:
    """Leave."""
    sys.exit(3)

def fail(secret: str) -> None:
    """Fail."""
    raise ValueError(f"no {secret}")

def refuse() -> None:
    """Refuse."""
    raise NotDone("It is closed.")

def flood() -> str:
    """Flood."""
    return "x" * 20_000_000

@pure()
def odd() -> str:
    """Half a character."""
    print("noise", file=sys.stderr)
    return "a\\ud800b"

@pure()
def raw() -> bytes:
    """Bytes."""
    return b"x"

@pure()
def seen() -> list[str]:
    """The environment."""
    return sorted(os.environ)

@effect()
def child() -> str:
    """Begin a process."""
    return subprocess.run([sys.executable, "-c", "print(6 * 7)"], capture_output=True, text=True).stdout.strip()

def _helper(x): ...
def no_hints(x):
    """No hints."""
def no_words(x: int): ...
def many(*x: int):
    """Many."""
def strange(x: type):
    """Strange hints, that no model can be told: a callable."""
def stranger(x: "Nowhere"):
    """A name that is nowhere."""
'''


@asynccontextmanager
async def brought(folder: Path, environment: tuple[str, ...] = ()) -> AsyncGenerator[BroughtTools]:
    async with Workers(confines=confines(environment)) as workers:
        yield await python_tools(folder, workers, tool_names())


def context(folder: Path) -> ToolContext:
    return ToolContext("t", "c", "t:c", folder / "work", "m", SystemClock(), lambda _: None)


async def ran(found: BroughtTools, name: str, arguments: Mapping[str, Json], where: ToolContext) -> ToolOutcome:
    registry = ToolRegistry(found.tools)
    spec = next(one for one in registry.specs() if one.name == name)
    return await registry.run(Runnable(spec, arguments), where)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "everything.py").write_text(EVERYTHING)
    return tmp_path / "tools"


async def test_each_function_is_a_tool_or_it_is_said_why_it_is_none(folder: Path):
    async with brought(folder) as found:
        names = [tool.spec.name for tool in found.tools]
    assert names[:3] == ["kinds", "book", "hang"]
    assert not {"Call", "NotDone", "_helper", "Path"} & {*names}
    wrong = {one.why.partition(":")[0] for one in found.unusable}
    assert wrong == {"no_hints", "no_words", "many", "strange", "stranger"}
    by_name = {tool.spec.name: tool.spec for tool in found.tools}
    assert by_name["kinds"].effect is EffectClass.PURE
    assert by_name["book"].effect is EffectClass.KEYED
    assert by_name["fail"].effect is EffectClass.EFFECT, "who says nothing is run once"
    assert by_name["book"].parameters == {
        "type": "object", "additionalProperties": False, "required": ["what"],
        "properties": {"what": {"type": "string", "description": "what to book"}},
    }  # fmt: skip
    assert {tool.described.seconds for tool in found.tools if tool.spec.name == "hang"} == {0.5}


async def test_a_decorator_needs_no_parentheses_and_what_stands_in_them_needs_a_name(tmp_path: Path):
    tools = tmp_path / "tools"
    tools.mkdir()
    bare = "".join(
        f'@{name}\ndef {name}_bare() -> str:\n    """Bare."""\n    return "{name}"\n'
        f'@{name}()\ndef {name}_empty() -> str:\n    """With nothing in them."""\n    return "{name}"\n'
        for name in ("pure", "keyed", "effect")
    )
    (tools / "bare.py").write_text(f"from agent_core.toolbox import effect, keyed, pure\n{bare}")
    (tools / "unnamed.py").write_text(
        'from agent_core.toolbox import effect\n@effect(30)\ndef one():\n    """One."""\n'
    )
    async with brought(tools) as found:
        assert (await ran(found, "effect_bare", {}, context(tmp_path))).text == "effect"
    by_name = {tool.spec.name: (tool.spec.effect.value, tool.described.seconds) for tool in found.tools}
    assert by_name == {
        f"{name}_{how}": (name, 60.0) for name in ("pure", "keyed", "effect") for how in ("bare", "empty")
    }
    assert [one.why for one in found.unusable] == [
        "it cannot be imported: TypeError: what stands in the parentheses has to be named: @effect(seconds=30) (unnamed.py, line 2)"
    ]


@pytest.mark.parametrize("mark", [pure, keyed, effect])
@pytest.mark.parametrize(
    "seconds", [-1.0, 0.0, 0.1, SECONDS, LONGEST_SECONDS, LONGEST_SECONDS + 1, float("inf"), float("nan")]
)
def test_a_tool_has_a_time_and_no_more_than_an_hour(mark: Callable[..., Any], seconds: float):
    if 0 < seconds <= LONGEST_SECONDS:
        assert getattr(mark(seconds=seconds)(lambda: None), MARK).seconds == seconds
    else:
        with pytest.raises(ValueError, match="at most 3600"):
            mark(seconds=seconds)(lambda: None)


async def test_what_stands_in_arguments_arrives_as_the_hints_say(folder: Path, tmp_path: Path):
    async with brought(folder) as found:
        arguments: dict[str, Json] = {"a": 3, "c": "large", "d": [{"name": "x"}], "e": "2026-11-23"}
        outcome = await ran(found, "kinds", arguments, context(tmp_path))
        assert outcome.text == '{"a":3,"c":"large","d":[{"name":"x","zip":0}],"e":"2026-11-23"}'
        registry = ToolRegistry(found.tools)
        for wrong in ('{"a": "three"}', "{}", '{"a": 1, "z": 2}', '{"a": 1, "c": "huge"}'):
            assert isinstance(registry.check("kinds", wrong), ArgumentsUnreadable), wrong
        unread = await ran(found, "kinds", {"a": 1, "e": "the first of May"}, context(tmp_path))
        assert unread.status is ToolStatus.REFUSED
        assert "nothing was done" in unread.text


async def test_a_call_knows_its_key_and_says_how_far_it_is(folder: Path, tmp_path: Path):
    said: list[str] = []
    where = replace(context(tmp_path), heartbeat=said.append)
    async with brought(folder) as found:
        assert (await ran(found, "book", {"what": "a table"}, where)).text == "t:c False True"
        assert (await ran(found, "book", {"what": "a table"}, replace(where, again=True))).text == "t:c True True"
    assert said == ["asking", "asking"]
    assert (tmp_path / "work" / "booked").read_text() == "a table"


@pytest.mark.parametrize(
    ("name", "status", "words"),
    [
        ("hang", ToolStatus.TIMED_OUT, "within 0.5 s"),
        ("hang_in_the_middle", ToolStatus.TIMED_OUT, DOUBT),
        ("die", ToolStatus.UNKNOWN, DOUBT),
        ("die_reading", ToolStatus.FAILED, "its process died"),
        ("leave", ToolStatus.FAILED, DOUBT),
        ("fail", ToolStatus.FAILED, "ValueError: no thing (everything.py, line "),
        ("refuse", ToolStatus.FAILED, "Nothing was done: It is closed."),
        ("flood", ToolStatus.FAILED, "ran to its end; its result was too large"),
        ("raw", ToolStatus.FAILED, "it returned bytes"),
        ("odd", ToolStatus.OK, "a?b"),
        ("child", ToolStatus.OK, "42"),
    ],
)
async def test_whatever_a_tool_does_it_is_told_truly_and_the_next_one_works(
    folder: Path, tmp_path: Path, name: str, status: ToolStatus, words: str
):
    async with brought(folder) as found:
        outcome = await ran(found, name, {"secret": "thing"} if name == "fail" else {}, context(tmp_path))
        assert outcome.status is status, outcome
        assert words in outcome.text
        assert (await ran(found, "kinds", {"a": 1}, context(tmp_path))).status is ToolStatus.OK


async def test_a_tool_has_no_variables_but_those_that_are_named(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OUTSPOKEN_SERVER__API_KEY", "secret")
    monkeypatch.setenv("WEATHER_KEY", "mine")
    async with brought(folder, ("WEATHER_KEY",)) as found:
        seen = (await ran(found, "seen", {}, context(tmp_path))).text
    assert "WEATHER_KEY" in seen
    assert "OUTSPOKEN" not in seen


async def test_a_file_that_cannot_be_used_takes_nothing_with_it(folder: Path, tmp_path: Path):
    (folder / "broken.py").write_text("import nowhere\n")
    (folder / "bad.py").write_text("def f(:\n")
    (folder / "leaves.py").write_text("import os\nos._exit(0)\n")
    (folder / "empty.py").write_text("x = 1\n")
    (folder / "again.py").write_text('def kinds(a: int):\n    """Twice."""\ndef read_file(a: int):\n    """Ours."""\n')
    (folder / "_shared.py").write_text("NUMBER = 42\n")
    (folder / "uses.py").write_text(
        'from _shared import NUMBER\ndef shared() -> int:\n    """Of another file."""\n    return NUMBER\n'
    )
    async with brought(folder) as found:
        why = {f"{one.source}: {one.why}" for one in found.unusable}
        assert (await ran(found, "shared", {}, context(tmp_path))).text == "42"
    for words in (
        "broken.py: it cannot be imported: ModuleNotFoundError: No module named 'nowhere' (broken.py, line 1)",
        "leaves.py: the process that imports it came to no good end (died)",
        "empty.py: it holds no function that could be a tool",
        "everything.py: kinds: again.py has a tool of this name already; rename it",
        "again.py: read_file: the gateway itself has a tool of this name already; rename it",
    ):
        assert words in why
    bad = next(words for words in why if words.startswith("bad.py: it cannot be imported: SyntaxError"))
    assert bad.count("line 1") == 1, "where it is, stands there once"


async def test_an_object_without_words_is_no_result(folder: Path, tmp_path: Path):
    (folder / "things.py").write_text(
        'import datetime\ndef thing() -> object:\n    """A thing."""\n    return [object()]\n'
        'def day() -> object:\n    """A day."""\n    return [datetime.date(2026, 1, 1)]\n'
    )
    async with brought(folder) as found:
        outcome = await ran(found, "thing", {}, context(tmp_path))
        assert (await ran(found, "day", {}, context(tmp_path))).text == '["2026-01-01"]'
    assert outcome.status is ToolStatus.FAILED
    assert "an object (object) that has no words" in outcome.text


async def test_a_folder_that_is_not_there_is_told(tmp_path: Path):
    async with brought(tmp_path / "nowhere") as found:
        assert found.tools == ()
        assert "no such file" in found.unusable[0].why


async def test_a_file_that_changed_is_not_run_half_old_and_half_new(folder: Path, tmp_path: Path):
    async with brought(folder) as found:
        (folder / "everything.py").write_text(EVERYTHING.replace("All kinds.", "Other kinds."))
        outcome = await ran(found, "kinds", {"a": 1}, context(tmp_path))
    assert outcome.status is ToolStatus.REFUSED
    assert "changed since the gateway began" in outcome.text


async def test_a_package_declares_tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    site = tmp_path / "site"
    (site / "my_weather-1.dist-info").mkdir(parents=True)
    (site / "my_weather-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: my_weather\nVersion: 1\n")
    declared = "[outspoken.tools]\na = my_weather\nb = my_weather.more:LIST\nc = my_weather.nowhere\n"
    (site / "my_weather-1.dist-info" / "entry_points.txt").write_text(declared)
    (site / "my_weather").mkdir()
    (site / "my_weather" / "__init__.py").write_text('def rain(day: str) -> str:\n    """Rain."""\n    return day\n')
    more = 'def wind(day: str) -> str:\n    """Wind."""\n    return day\nLIST = [wind]\n'
    (site / "my_weather" / "more.py").write_text(more)
    monkeypatch.setattr(sys, "path", [str(site), *sys.path])
    look_again()
    async with Workers(confines=confines(())) as workers:
        found = await python_tools(None, workers, ())
        assert [tool.spec.name for tool in found.tools] == ["rain", "wind"]
        assert (await ran(found, "wind", {"day": "Monday"}, context(tmp_path))).text == "Monday"
    assert [one.source for one in found.unusable] == ["my_weather.nowhere (outspoken.tools)"]
    monkeypatch.undo()
    look_again()


async def test_what_a_tool_has_begun_ends_with_it(folder: Path, tmp_path: Path):
    (folder / "parent.py").write_text(
        "import subprocess, time\nfrom pathlib import Path\nfrom agent_core.toolbox import effect\n"
        '@effect(seconds=1.5)\ndef parent() -> None:\n    """Begin a process and hang."""\n'
        '    Path("pid").write_text(str(subprocess.Popen(["sleep", "600"]).pid))\n    time.sleep(60)\n'
    )
    async with brought(folder) as found:
        assert (await ran(found, "parent", {}, context(tmp_path))).status is ToolStatus.TIMED_OUT
    pid = int((tmp_path / "work" / "pid").read_text())
    try:
        state = Path(f"/proc/{pid}/stat").read_text().split()[2]
    except FileNotFoundError:
        return
    if state != "Z":
        os.kill(pid, signal.SIGKILL)
        pytest.fail("it goes on")


async def test_what_one_tool_leaves_behind_no_other_finds(folder: Path, tmp_path: Path):
    (folder / "leaves.py").write_text(
        "import os\nfrom agent_core.toolbox import pure\n"
        'def opens() -> int:\n    """Open."""\n    return len([os.open("/dev/null", os.O_RDONLY) for _ in range(900)])\n'
        'def forks() -> str:\n    """Copy."""\n    return "copy" if os.fork() == 0 else "first"\n'
        '@pure()\ndef counts() -> int:\n    """Count."""\n    return len(os.listdir("/proc/self/fd"))\n'
    )
    async with brought(folder) as found:
        assert (await ran(found, "opens", {}, context(tmp_path))).text == "900"
        assert int((await ran(found, "counts", {}, context(tmp_path))).text) < 50
        assert (await ran(found, "forks", {}, context(tmp_path))).text == "first"
        for _ in range(3):
            assert (await ran(found, "counts", {}, context(tmp_path))).text.isdigit(), "the copy's answer is nobody's"


async def test_what_a_tool_has_begun_ends_with_its_call_also_a_daemon(folder: Path, tmp_path: Path):
    """A daemon has left the group and the session of its process, and its parent is dead."""
    (folder / "daemons.py").write_text(
        "import os, subprocess, time\n"
        "def daemon(path: str) -> None:\n"
        "    subprocess.run(['setsid', '-f', 'sh', '-c', f'echo $$ > {path}; exec sleep 300'], env={})\n"
        "    while not (os.path.exists(path) and open(path).read().strip()):\n        time.sleep(0.01)\n"
        'def leaves(path: str) -> str:\n    """Leave one."""\n    daemon(path)\n    return "left"\n'
        'def hangs(path: str) -> str:\n    """Hang."""\n    daemon(path)\n    time.sleep(60)\n    return "never"\n'
    )
    async with brought(folder) as found:
        left = tmp_path / "left"
        assert (await ran(found, "leaves", {"path": str(left)}, context(tmp_path))).text == "left"
        assert not alive(int(left.read_text()))
        hung = tmp_path / "hung"
        call = asyncio.create_task(ran(found, "hangs", {"path": str(hung)}, context(tmp_path)))
        async with asyncio.timeout(20):
            while not (hung.exists() and hung.read_text().strip()):
                await asyncio.sleep(0.05)
        assert alive(int(hung.read_text()))
        call.cancel()
        async with asyncio.timeout(20):
            while alive(int(hung.read_text())):
                await asyncio.sleep(0.05)


def alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def test_what_a_tool_or_a_program_of_its_reads_is_nobodys_request(folder: Path, tmp_path: Path):
    (folder / "reads.py").write_text(
        "import subprocess, sys\nfrom agent_core.toolbox import pure\n"
        '@pure(seconds=5)\ndef reads() -> str:\n    """Read."""\n    return repr(sys.stdin.read())\n'
        '@pure(seconds=5)\ndef begins() -> str:\n    """Have a program read, now and later."""\n'
        '    subprocess.Popen(["sh", "-c", "sleep 0.3; cat"])\n'
        '    return subprocess.run(["cat"], capture_output=True, text=True).stdout or "nothing"\n'
        '@pure(seconds=5)\ndef ends() -> int:\n    """Ask a program to end."""\n'
        '    asked = subprocess.Popen(["sleep", "60"])\n    asked.terminate()\n    return asked.wait(3)\n'
    )
    async with brought(folder) as found:
        assert (await ran(found, "reads", {}, context(tmp_path))).text == "''"
        assert (await ran(found, "begins", {}, context(tmp_path))).text == "nothing"
        await asyncio.sleep(0.5)
        assert (await ran(found, "ends", {}, context(tmp_path))).text == str(-signal.SIGTERM)


async def test_what_a_generator_gives_is_a_list_also_of_one_that_waits(folder: Path, tmp_path: Path):
    (folder / "gives.py").write_text(
        "from agent_core.toolbox import pure\nfrom collections.abc import AsyncIterator, Iterator\n"
        '@pure()\ndef gives() -> Iterator[int]:\n    """Give."""\n    yield 1\n    yield 2\n'
        '@pure()\nasync def waits() -> AsyncIterator[int]:\n    """Give and wait."""\n    yield 1\n    yield 2\n'
    )
    async with brought(folder) as found:
        assert (await ran(found, "gives", {}, context(tmp_path))).text == "[1,2]"
        assert (await ran(found, "waits", {}, context(tmp_path))).text == "[1,2]"


async def test_what_a_generator_raises_is_told_as_what_any_tool_raises(folder: Path, tmp_path: Path):
    (folder / "stops.py").write_text(
        "from agent_core.toolbox import NotDone\nfrom collections.abc import Iterator\n"
        'def stops() -> Iterator[int]:\n    """Stop."""\n    yield 1\n    raise NotDone("It is closed.")\n'
        'def breaks() -> Iterator[int]:\n    """Break."""\n    yield 1\n    raise ValueError("no more")\n'
    )
    async with brought(folder) as found:
        closed = await ran(found, "stops", {}, context(tmp_path))
        broken = await ran(found, "breaks", {}, context(tmp_path))
    assert closed.text == "Nothing was done: It is closed."
    assert broken.text.startswith("breaks failed: ValueError: no more (stops.py, line 10).")


async def test_waiting_for_a_process_is_none_of_a_tools_own_time(folder: Path, tmp_path: Path):
    (folder / "slow.py").write_text(
        "import time\nfrom agent_core.toolbox import effect\n"
        '@effect(seconds=2)\ndef slow() -> str:\n    """Take time."""\n    time.sleep(1)\n    return "done"\n'
    )
    async with brought(folder) as found:
        outcomes = await asyncio.gather(*(ran(found, "slow", {}, context(tmp_path)) for _ in range(4)))
    assert [one.text for one in outcomes] == ["done"] * 4, (
        "one conversation has one process, so the last waits for three seconds"
    )


ANSWERS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["tools", "unfit", "digest", "broken", "name", "description", "parameters", "effect", "seconds"]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)


@given(ANSWERS)
def test_whatever_a_worker_says_is_a_tool_or_told(answer: Json):
    tools, wrong = described(ToolSource("x.py", file="/x.py"), answer)
    assert tools or wrong
    assert all(isinstance(one.spec, ToolSpec) for one in tools)


@given(st.sampled_from(EffectClass), st.sampled_from(WorkerTrouble))
def test_a_call_that_may_have_been_done_is_never_told_as_not_done(effect: EffectClass, trouble: WorkerTrouble):
    outcome = failed(ToolSpec("x", "", {}, effect), trouble, 2)
    begun = trouble in (
        WorkerTrouble.DIED, WorkerTrouble.MEMORY, WorkerTrouble.SLOW, WorkerTrouble.CLOSED, WorkerTrouble.BUG, WorkerTrouble.DEPTH,
    )  # fmt: skip
    assert (DOUBT in outcome.text) == (begun and effect is not EffectClass.PURE)
    slow = trouble is WorkerTrouble.SLOW
    assert (outcome.status is ToolStatus.TIMED_OUT) == slow
    assert (outcome.status is ToolStatus.UNKNOWN) == (begun and not slow and effect is not EffectClass.PURE)
    if outcome.status is ToolStatus.UNKNOWN:
        restarts = outcome.doubt in (DoubtCause.UNSAID, DoubtCause.RESTARTED)
        assert restarts == (trouble is WorkerTrouble.CLOSED), "a restart is told where there was one"


@given(st.sampled_from(EffectClass), st.text())
def test_what_raised_is_in_doubt_unless_it_says_that_nothing_was_done(effect: EffectClass, words: str):
    spec = ToolSpec("x", "", {}, effect)
    assert (DOUBT in outcome_of(spec, "raised", words, "").text) == (effect is not EffectClass.PURE)
    assert "Nothing was done" in outcome_of(spec, "not_done", words, "").text


async def test_the_examples_of_the_page_work(tmp_path: Path):
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (tmp_path / "tools").mkdir()
    for number, block in enumerate(blocks):
        (tmp_path / "tools" / f"example{number}.py").write_text(block)
    async with brought(tmp_path / "tools") as found:
        assert not found.unusable
        assert (await ran(found, "temperature", {"city": "Rome"}, context(tmp_path))).text == "21 °C"
        assert "Nothing is known of Bonn" in (await ran(found, "temperature", {"city": "Bonn"}, context(tmp_path))).text
        ordered = await ran(found, "order", {"article": "tea", "number": 2}, context(tmp_path))
        assert ordered.text == "ordered 2 × tea as t:c"


SLOW_PATTERN = r"^(a+)+$"


@pytest.mark.parametrize("pattern", [r"^\p{L}+$", SLOW_PATTERN])
@pytest.mark.parametrize("place", ["properties", "$defs", "pattern", "patternProperties"])
def test_patterns_of_a_tool_are_its_workers_to_match(pattern: str, place: str):
    """Its engine knows more than ours, and takes no time that grows without a bound; every conversation would wait for ours."""
    name: dict[str, Json] = {"type": "string", "pattern": pattern}
    places: dict[str, Json] = {
        "properties": {"type": "object", "properties": {"it": name}, "additionalProperties": False},
        "$defs": {"type": "object", "properties": {"it": {"$ref": "#/$defs/pattern"}}, "$defs": {"pattern": name}},
        "pattern": {"type": "object", "properties": {"it": {"type": "string"}, "pattern": name}, "required": ["it"]},
        "patternProperties": {
            "type": "object",
            "properties": {"it": {"type": "object", "patternProperties": {pattern: {}}, "additionalProperties": False}},
        },
    }  # fmt: skip
    parameters = places[place]
    one: Json = {"name": "greet", "description": "Greet.", "parameters": parameters, "effect": "pure", "seconds": 5}
    (tool,), _ = described(ToolSource("greet.py"), {"tools": [one]})
    assert tool.spec.parameters == parameters, "the model is told all of it"
    registry = ToolRegistry([PythonTool(tool, Workers())])
    given: dict[str, Json] = {"it": {"x": 1} if place == "patternProperties" else "a" * 40 + "!"}
    if place == "pattern":
        given["pattern"] = "a" * 40 + "!"
    assert isinstance(registry.check("greet", orjson.dumps(given).decode()), Runnable)
    assert isinstance(registry.check("greet", '{"it": 7}'), ArgumentsUnreadable), "all else is checked at once"
