"""The archive about a turn: complete, opened on another machine, and without a secret or a word of the conversation."""

from __future__ import annotations

import json
import re
import resource
import stat
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from agent_core.store.deliveries.rows import AdapterStateRow
from agent_core.text.redaction import is_secret_name
from gateway.config.keys import KeyDoc, describe
from gateway.config.paths import Paths, find_paths
from gateway.config.reading import load, secret_values
from gateway.config.sections import Config
from gateway.operate import bundle
from gateway.operate.bundle import FREE_TEXT, CannotBundle, NoExport, export_text, put_new, shown_config, write
from gateway.operate.replay import CannotReplay, ReplayRequest, run
from tests.gateway.test_explain import SECRET_WORDS, answered, part
from tests.store.support import opened

SECRETS = {
    "OPENAI_API_KEY": "sk-model-secret-1234567890",
    "TELEGRAM_BOT_TOKEN": "123456:AAFq-token-abcdefghijklmnop",
    "DISCORD_BOT_TOKEN": "MTIzNDU2Nzg5MDEy.Gabcde.discordtokenqrstuvwxyz",
    "SLACK_BOT_TOKEN": "xoxb-slack-bot-token-1",
    "SLACK_APP_TOKEN": "xapp-slack-app-token-2",
    "OUTSPOKEN_SERVER__API_KEY": "server-key-0987654321",
}
NAMES = {
    "OUTSPOKEN_MODEL__SYSTEM_PROMPT": "You work for Wolfgang in Reykjavik.",
    "OUTSPOKEN_TELEGRAM__ALLOW": "wolfgang_the_admin",
    "OUTSPOKEN_MODEL__EXTRA_HEADERS": '{"X-Team": "hidden-team"}',
    "OUTSPOKEN_MODEL__BASE_URL": "https://models.example/v1",
}


def configured(tmp_path: Path, where: str) -> tuple[Config, Paths]:
    env = {
        **SECRETS,
        **NAMES,
        "OUTSPOKEN_STORAGE__URL": where if "://" in where else f"sqlite:///{where}",
        "OUTSPOKEN_HOME": str(tmp_path),
    }
    return load(None, env).config, find_paths(env)


def test_every_secret_of_the_configuration_is_known_to_the_redactor(tmp_path: Path):
    config, _ = configured(tmp_path, f"sqlite:///{tmp_path}/x.db")
    assert set(SECRETS.values()) <= set(secret_values(config))


async def test_a_bundle_holds_what_is_needed_and_nothing_private(tmp_path: Path, where: str):
    config, paths = configured(tmp_path, where)
    trouble = f'cannot read "{SECRET_WORDS}" with {SECRETS["TELEGRAM_BOT_TOKEN"]}'
    async with opened(where) as store:
        await answered(store, ["7:41"], "t_1", parts=[part("t_1", failures=1, trouble=trouble)])
        opened_at = (await store.turns.one("t_1")).opened_at  # type: ignore[union-attr]
        words = f'The token {SECRETS["TELEGRAM_BOT_TOKEN"]} is not accepted for "{SECRET_WORDS}".'
        await store.deliveries.note_adapter(AdapterStateRow("telegram/1", opened_at, "needs a person", words))
    file = tmp_path / "b.tar.gz"
    counted = f'outspoken_turns_total{{exit="answered"}} 1.0 # {SECRETS["OUTSPOKEN_SERVER__API_KEY"]} {Path.home()}/x\n'
    said = await write("t_1", file, config, paths, {}, counted)
    assert "No secret and no word of the conversation" in said
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with tarfile.open(file) as archive:
        names = archive.getnames()
        texts = {name: (archive.extractfile(name) or pytest.fail(name)).read().decode() for name in names}
    assert set(names) == {
        "README.txt", "adapters.json", "config.json", "journal.jsonl", "machine.json", "metrics.txt", "story.json", "story.txt", "troubles.json",
    }  # fmt: skip
    whole = "\n".join(texts.values())
    for secret in (*SECRETS.values(), "Reykjavik", "wolfgang", "hidden-team"):
        assert secret.lower() not in whole.lower(), secret
    assert str(Path.home()) not in whole, "whose machine it is"
    for word in SECRET_WORDS.split():
        if len(word) > 3:
            assert not re.search(rf"\b{word}\b", whole), word
    assert json.loads(texts["config.json"])["telegram"]["token"] == "set"
    machine = json.loads(texts["machine.json"])
    assert machine["database"]["schema"] == machine["database"]["newest"]
    assert json.loads(texts["adapters.json"])[0]["state"] == "needs a person"
    assert "The turn was answered." in texts["story.txt"]
    assert texts["metrics.txt"].startswith('outspoken_turns_total{exit="answered"} 1.0')


def archived(file: Path, name: str) -> str:
    """A file of an archive."""
    with tarfile.open(file) as archive:
        return (archive.extractfile(name) or pytest.fail(name)).read().decode()


async def test_a_bundle_is_replayed_on_another_machine(tmp_path: Path, sqlite: str):
    config, paths = configured(tmp_path, sqlite)
    async with opened(sqlite) as store:
        await answered(store, ["7:41"], "t_1")
    file = tmp_path / "b.tar.gz"
    await write("t_1", file, config, paths, {})

    def nowhere() -> tuple[Config, Paths]:
        raise AssertionError("an archive needs no configuration")

    said: list[str] = []
    assert await run(ReplayRequest(file=file), nowhere, said.append)
    assert "The replay agrees with what was recorded." in said[0]
    with tarfile.open(file) as archive:
        assert (archive.extractfile("metrics.txt") or pytest.fail("none")).read().startswith(b"# No gateway answered")
    with pytest.raises(CannotBundle, match="must not exist yet"):
        await write("t_1", file, config, paths, {})
    with pytest.raises(CannotBundle, match="There is no turn"):
        await write("t_none", tmp_path / "c.tar.gz", config, paths, {})


async def test_a_damaged_archive_is_refused_in_words(tmp_path: Path):
    broken = tmp_path / "broken.tar.gz"
    broken.write_bytes(b"\x1f\x8b nothing of the kind")
    with pytest.raises(NoExport):
        export_text(broken)
    empty = tmp_path / "empty.tar.gz"
    with tarfile.open(empty, "w:gz"):
        pass
    with pytest.raises(CannotReplay, match=r"no archive that holds a journal\.jsonl"):
        await run(ReplayRequest(file=empty), lambda: pytest.fail("no configuration"), print)


def test_a_shown_configuration_has_every_key_and_no_free_text(tmp_path: Path):
    config, _ = configured(tmp_path, f"sqlite:///{tmp_path}/x.db")
    shown = shown_config(config)
    assert {section: set(keys) for section, keys in shown.items()} == {
        section: set(keys) for section, keys in config.model_dump().items()
    }
    assert shown["model"]["system_prompt"] == f"{len(NAMES['OUTSPOKEN_MODEL__SYSTEM_PROMPT'])} characters"
    assert shown["model"]["base_url"] == "https://models.example/v1"
    assert shown["server"]["port"] == 8787


@pytest.mark.parametrize("size", [0, 5, 6])
def test_of_an_archive_no_more_is_unpacked_than_an_export_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(bundle, "MOST_BYTES", 5)
    (tmp_path / bundle.JOURNAL).write_text("x" * size)
    with tarfile.open(file := tmp_path / "b.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / bundle.JOURNAL, bundle.JOURNAL)
    if size > 5:
        with pytest.raises(NoExport, match="larger than 5 bytes"):
            export_text(file)
    else:
        assert export_text(file) == "x" * size


def test_of_what_has_no_room_nothing_stays(tmp_path: Path) -> None:
    """Half an archive is none, and would be in the way of the next."""
    to = tmp_path / "one"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        with pytest.raises(OSError, match="large"):
            put_new(to, bytes(100_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not to.exists()
    put_new(to, b"whole")
    with pytest.raises(FileExistsError):
        put_new(to, b"another")
    assert to.read_bytes() == b"whole"


PEOPLES = {
    "OUTSPOKEN_AGENTS__EACH": '[{"name": "coder", "prompt": "Serve wolfgang.", "people": ["telegram/wolfgang"], "chats": ["telegram/wolfgang"]}]',
    "OUTSPOKEN_HOOKS__ENTRIES": '[{"name": "builds", "prompt": "Tell wolfgang.", "session": "wolfgang", "scheme": "github", "secret_env": "HOOK"}]',
    "OUTSPOKEN_SCHEDULE__ENTRIES": '[{"name": "morning", "prompt": "Wake wolfgang.", "chat": "telegram/wolfgang", "every": "2 hours"}]',
    "OUTSPOKEN_WEBHOOKS__RECEIVERS": '[{"name": "deploy", "url": "https://example.org", "secret_env": "WHSEC", "sessions": ["wolfgang"]}]',
    "OUTSPOKEN_MCP__SERVERS": '[{"name": "papers", "command": "uvx", "args": ["--user", "wolfgang"], "env": {"WHO": "wolfgang"}}]',
    "OUTSPOKEN_TOOLS__MEMORY_WRITERS": "telegram/4711/wolfgang",
    "OUTSPOKEN_TOOLS__APPROVERS": "telegram/wolfgang",
    "OUTSPOKEN_OPERATORS__CHAT": "telegram/wolfgang",
    "HOOK": "a-word-of-nobody",
    "WHSEC": "whsec_" + "QUFB" * 10,
}


def test_nobodys_name_and_nobodys_words_stand_in_the_configuration_that_is_shown() -> None:
    config = load(None, {**SECRETS, **NAMES, **PEOPLES}).config
    text = str(shown_config(config))
    assert "wolfgang" not in text
    assert "whsec_" not in text


SHOWN = frozenset(
    {
        *("name", "base_url", "url", "host", "public_url", "otlp_endpoint", "api_base", "gateway_url", "cors_origins"),
        *(
            "model",
            "models",
            "fallbacks",
            "slow_arguments",
            "known_bad",
            "known_bad_off",
            "prices",
            "currency",
            "voice",
        ),
        *("tools", "skills", "enabled", "disabled", "approval", "tainted_tools", "pure", "keyed", "effect", "trusted"),
        *("trusted_proxies", "identity_header", "language", "languages", "time_zone", "timezone", "cron", "every"),
        *("image", "hosts", "read", "command", "prefix", "deny", "client_id", "scope", "token_as", "environment"),
        *("events", "exits", "surfaces", "fields", "servers", "each", "receivers", "entries", "secrets"),
        *("fault", "remedy", "report", "webhook_url", "api_key_env", "secret_env", "token_env"),
    }
)
"""Keys whose texts say how something is set up, and nothing of people."""


def test_of_each_key_that_holds_text_it_is_decided_whether_strangers_may_read_it() -> None:
    def keys(docs: Iterable[KeyDoc]) -> Iterator[KeyDoc]:
        for doc in docs:
            yield doc
            yield from keys(doc.table)

    texts = [
        doc
        for doc in keys(describe())
        if doc.type.startswith(("text", "list of", "table")) and not doc.is_path and not doc.secret
    ]
    undecided = {doc.name for doc in texts} - {doc.name for doc in texts if doc.key in SHOWN | FREE_TEXT}
    assert {name for name in undecided if not is_secret_name(name.partition(" ")[2])} == set()


async def test_a_machine_without_homes_is_hidden_no_less_and_nothing_else_is(
    tmp_path: Path, sqlite: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, paths = configured(tmp_path, sqlite)
    async with opened(sqlite) as store:
        await answered(store, ["7:41"], "t_1")
    monkeypatch.setenv("HOME", "/")
    await write("t_1", tmp_path / "b.tar.gz", config, paths, {})
    text = archived(tmp_path / "b.tar.gz", "config.json")
    assert json.loads(text)["model"]["base_url"] == "https://models.example/v1"


async def test_wherever_an_archive_was_damaged_on_its_way_that_is_said_in_words(tmp_path: Path, sqlite: str) -> None:
    config, paths = configured(tmp_path, sqlite)
    async with opened(sqlite) as store:
        await answered(store, ["7:41"], "t_1")
    await write("t_1", tmp_path / "b.tar.gz", config, paths, {})
    whole = (tmp_path / "b.tar.gz").read_bytes()
    damaged = tmp_path / "damaged.tar.gz"
    refused = 0
    for place in range(10, len(whole), max(1, len(whole) // 200)):
        damaged.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        try:
            export_text(damaged)
        except NoExport:
            refused += 1
    assert refused
