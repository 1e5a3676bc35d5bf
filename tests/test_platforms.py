"""What a chat platform is to the rest: one folder with a record, found by itself; and a package of somebody else's that brings one."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from adapters.platforms import GROUP, found, platform_of, platforms
from gateway.config.keys import template
from gateway.config.reading import ConfigError, load
from gateway.observe.logcatalogue import event_of
from gateway.operate.triage.issues import event_issue
from tests.chats.harness import answer, quiet, running
from tests.chats.model import scripted_model
from tests.chats.test_schedule import entry, put_back, scheduled
from tests.gateway.first_run import doctor, outspoken
from tests.printed import configuration
from tests.source import nodes
from tests.toy.harness import ToyHarness
from tests.toy.installed import PACKAGE, seen_in
from tests.toy.server import TOKEN, ToyServer

ROOT = Path(__file__).parents[1]
HOUR_MS = 3_600_000
SHIPPED = ("telegram", "discord", "slack")

# ---------------------------------------------------------------------- one folder each


def test_the_shipped_platforms_are_found_in_their_folders() -> None:
    assert tuple(one.name for one in platforms()) == SHIPPED
    assert found().broken == ()
    for one in platforms():
        assert one.section.__module__ == f"adapters.{one.name}.platform"


def named_in(path: str, source: str, names: tuple[str, ...]) -> Iterator[str]:
    """Where a module asks for a platform by name: a literal that is one, a key or an event of it, its section, its folder."""
    for node in nodes(source):
        match node:
            case ast.Constant(value=str(words)) if words in names or (
                words.partition(".")[0] in names and " " not in words
            ):
                yield f"{path}:{node.lineno}: {words!r}"
            case ast.Attribute(attr=attribute, value=ast.Name(id="config") | ast.Attribute(attr="config")) if (
                attribute in names
            ):
                yield f"{path}:{node.lineno}: config.{attribute}"
            case ast.ImportFrom(module=str(module)) if module.split(".")[:2] in [["adapters", name] for name in names]:
                yield f"{path}:{node.lineno}: import of {module}"
            case ast.Import(names=imported):
                for one in imported:
                    if one.name.split(".")[:2] in [["adapters", name] for name in names]:
                        yield f"{path}:{node.lineno}: import of {one.name}"
            case _:
                pass


def test_nobody_outside_of_a_platforms_folder_asks_for_it_by_name() -> None:
    own = tuple(f"adapters/{name}/" for name in SHIPPED)
    asked: list[str] = []
    for package in ("agent_core", "adapters", "gateway"):
        for file in sorted((ROOT / package).rglob("*.py")):
            path = file.relative_to(ROOT).as_posix()
            if not path.startswith(own):
                asked += named_in(path, file.read_text(), SHIPPED)
    assert asked == []


@pytest.mark.parametrize(
    "planted",
    [
        'if platform == "slack": pass',
        'KNOWN = ("telegram", "api")',
        'name.startswith("discord.menu_not_set")',
        "config.telegram.token",
        "self.config.slack",
        "from adapters.slack.port import pieces",
        "def f():\n    import adapters.discord.check",
    ],
)
def test_a_planted_question_for_a_platform_is_found(planted: str) -> None:
    assert len([*named_in("a.py", planted, SHIPPED)]) == 1


def test_what_a_record_says_is_there() -> None:
    page = configuration.markdown()
    nav = (ROOT / "mkdocs.yml").read_text("utf-8")
    for one in platforms():
        assert (ROOT / "docs" / one.page).is_file()
        assert one.page in nav
        assert f"## [{one.name}]" in page
        keys = one.section.model_fields
        assert {*one.setup_keys, *one.setup_options} <= set(keys)
        assert not one.section().configured
        for path, printed in one.forms.items():
            assert (ROOT / path).read_text("utf-8") == printed(), f"print {path} anew"


def test_no_record_brings_its_platforms_library_along() -> None:
    words = (
        "import sys, adapters.platforms as p, gateway.config.reading as r; assert len(p.platforms()) == 3; r.load(None, {});"
        "print(*{m.partition('.')[0] for m in sys.modules} & {'discord', 'telegram', 'slack_bolt', 'slack_sdk', 'httpx2'})"
    )
    ran = subprocess.run([sys.executable, "-c", words], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == ""


# ---------------------------------------------------------------------- a package of somebody else's


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The toy package, installed by pip."""
    target = tmp_path_factory.mktemp("site")
    options = ("--quiet", "--disable-pip-version-check", "--no-deps", "--no-build-isolation", "--no-index")
    pip = [sys.executable, "-m", "pip", "install", *options, "--target", str(target), str(PACKAGE)]
    subprocess.run(pip, check=True, capture_output=True, timeout=120)
    return target


@pytest.fixture
def toy(package: Path) -> Iterator[None]:
    with seen_in(package):
        yield


@pytest.fixture
async def server() -> AsyncGenerator[ToyServer]:
    async with ToyServer().open() as up:
        yield up


def test_without_the_package_nobody_knows_the_platform() -> None:
    assert platform_of("toy") is None
    with pytest.raises(ConfigError, match="there is no such setting"):
        load(None, {"OUTSPOKEN_TOY__TOKEN": TOKEN})


@pytest.mark.usefixtures("toy")
def test_with_the_package_installed_it_is_one_of_them(tmp_path: Path) -> None:
    assert tuple(one.name for one in platforms()) == (*SHIPPED, "toy")
    assert "[toy]" in template()
    file = tmp_path / "outspoken.toml"
    file.write_text("[toy]\nport = 70000\n")
    with pytest.raises(ConfigError, match=r"\[toy\] port must be a whole number"):
        load(file, {})
    one = platform_of("toy")
    assert one is not None
    assert load(None, {"TOY_TOKEN": TOKEN}).config.of(one).configured
    assert event_of("toy.hung_up") is not None
    assert event_issue("toy.hung_up", "warning", ("bot",)).title == "connection lost: toy/bot"


@pytest.mark.usefixtures("toy")
async def test_it_is_set_up_and_seen_by_doctor(tmp_path: Path, server: ToyServer) -> None:
    asked = await outspoken(tmp_path, "setup", "--help")
    assert "slack|toy]" in asked.out
    assert "--port" in asked.out
    wrong = await outspoken(tmp_path, "setup", "toy", "--yes", "--port", str(server.port), TOY_TOKEN="wrong")
    assert wrong.status == 1, wrong.out
    assert not (tmp_path / ".env").exists()
    ran = await outspoken(tmp_path, "setup", "toy", "--port", str(server.port), stdin=f"{TOKEN}\n")
    assert ran.status == 0, ran.out
    assert "Write to the toy bot." in ran.out
    assert TOKEN not in ran.out
    assert f"TOY_TOKEN={TOKEN}" in (tmp_path / ".env").read_text()
    assert (await doctor(tmp_path)).of("toy.token")["level"] == "ok"
    told = await doctor(tmp_path, env={"TOY_TOKEN": "wrong"})
    assert told.of("toy.token")["level"] == "problem"
    assert "setup toy" in told.of("toy.token")["fix"]


@pytest.mark.usefixtures("toy")
async def test_it_is_scheduled_to_and_explained(tmp_path: Path, server: ToyServer) -> None:
    async with scripted_model() as model:
        harness = ToyHarness(server, model, tmp_path)
        ada = harness.person("Ada")
        place = harness.private(ada)
        settings = {"OUTSPOKEN_SCHEDULE__ENTRIES": entry(f"toy/{place.chat.id}")}
        async with running(harness, **settings):
            said = harness.say(place, ada, "say hello")
            await answer(harness, place, "hello", 30)
            await scheduled(harness, "config:morning")
        put_back(harness, "config:morning", 5 * HOUR_MS)
        async with running(harness, **settings):
            await answer(harness, place, "good morning", 30)
            await quiet(harness, place)
        env = {**harness.env()}
        told = await outspoken(tmp_path, "explain", f"{place.chat.id}:{said}", **env)
        assert told.status == 0, told.out
        assert "toy" in told.out
        beside = await outspoken(tmp_path, "explain", f"{place.chat.id}:{int(said) + 9}", **env)
        assert "of toy is not stored; it was written near" in beside.out, beside.out
        at = datetime.now(UTC).astimezone().strftime("%Y-%m-%d %H:%M")
        chat = await outspoken(tmp_path, "explain", "--chat", f"toy/{place.chat.id}", "--at", at, **env)
        assert "toy" in chat.out
        assert chat.status == 0, chat.out
        nowhere = await outspoken(tmp_path, "send", "--to", "toy/nonsense", "hello", **env)
        assert nowhere.status != 0


# ---------------------------------------------------------------------- packages that cannot be used


def declared(folder: Path, name: str, source: str) -> Path:
    """A package with an entry point, as it is installed."""
    module = folder.name.replace("-", "_")  # one of its own each time: Python keeps what it has imported
    (folder / f"{module}.py").write_text(source)
    info = folder / f"{name}_package-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}-package\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[{GROUP}]\n{name} = {module}:PLATFORM\n")
    return folder


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("import a_library_that_is_not_there", "a_library_that_is_not_there"),
        ("PLATFORM = 5", "Platform"),
        ("from adapters.telegram.platform import PLATFORM", "already a platform 'telegram'"),
        (
            "from dataclasses import replace\nfrom adapters.slack.platform import PLATFORM as S\nPLATFORM = replace(S, name='web')",
            "cannot be the name",
        ),
        (
            "from dataclasses import replace\nfrom adapters.slack.platform import PLATFORM as S\nPLATFORM = replace(S, name='odd')",
            "log events",
        ),
    ],
)
async def test_a_package_that_cannot_be_used_takes_nothing_else_with_it(tmp_path: Path, source: str, why: str) -> None:
    with seen_in(declared(tmp_path, "odd", source)):
        assert tuple(one.name for one in platforms()) == SHIPPED
        (broken,) = found().broken
        assert why in broken.words
        told = await doctor(tmp_path)
    assert why in told.of("platforms.package")["what"]
