"""Keys of the API: the laws of which key was shown and whom it speaks for, and real gateways that honour them."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aiohttp
import openai
import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from hypothesis import given
from hypothesis import strategies as st

from adapters.contract.callers import (
    ANYBODY,
    CONFIGURED,
    USER_CHARS,
    Caller,
    ErrorStyle,
    KeyTerms,
    caller,
    named_user,
)
from agent_core.store.errors import StorageUnavailable
from agent_core.text.redaction import MASK, Redactor
from gateway.http.entry import introducing
from gateway.people import keys
from gateway.people.keys import KeyRefused, Nameable
from tests.forked import run
from tests.gateway.test_process import daemon, environment
from tests.ports import free_port
from tests.serving import served

CONFIGURED_KEY = "configured-configured-configured"
WITH_KEY = {"OUTSPOKEN_SERVER__API_KEY": CONFIGURED_KEY, "OUTSPOKEN_SERVER__OPERATOR_KEY": "operating-operating"}
OPERATOR = {"Authorization": "Bearer operating-operating"}
NOTHING: Mapping[str, str] = {}


def new_key(seed: int) -> str:
    return keys.new_key(random.Random(seed).randbytes(37))


def known(*rows: Any) -> Mapping[str, keys.KnownKey]:
    return keys.by_prefix([keys.known_key(row) for row in rows])


def row(name: str, key: str, terms: KeyTerms | None = None, now: int = 1_000) -> Any:
    return keys.made(name, key, terms or KeyTerms(), "test", now)


seeds = st.integers(0, 2**32)
headers = st.dictionaries(
    st.sampled_from(["X-Outspoken-User", "X-OpenWebUI-User-Id", "X-OpenWebUI-User-Email", "X-Forwarded-User"]),
    st.text(max_size=30),
)
configured = st.none() | st.just(CONFIGURED_KEY)


# ------------------------------------------------------------------ which key


@given(seeds, seeds, configured)
def test_a_key_opens_what_it_was_made_for_and_another_one_does_not(one: int, other: int, own: str | None) -> None:
    key, wrong = new_key(one), new_key(other)
    table = known(row("laptop", key))
    found = keys.who(key, NOTHING, own, table, 2_000, keyless=own is None)
    assert found is not None
    assert found.key == "laptop"
    if wrong != key:
        assert keys.who(wrong, NOTHING, own, table, 2_000, keyless=own is None) is None


@given(seeds, st.integers(0, 63), st.sampled_from("aZ09-_ *"), configured)
def test_a_key_with_one_other_character_opens_nothing(seed: int, at: int, letter: str, own: str | None) -> None:
    key = new_key(seed)
    place = len(keys.MARK) + at % (len(key) - len(keys.MARK))
    changed = key[:place] + letter + key[place + 1 :]
    if changed != key:
        assert keys.who(changed, NOTHING, own, known(row("laptop", key)), 2_000, keyless=own is None) is None


@given(st.text(max_size=80), configured, seeds)
def test_who_shows_none_of_our_keys_is_judged_by_the_configured_one_alone(
    shown: str, own: str | None, seed: int
) -> None:
    found = keys.who(shown, NOTHING, own, known(row("laptop", new_key(seed))), 2_000, keyless=own is None)
    if own is not None:
        assert (found is ANYBODY) == (shown == own)
    elif not shown.startswith(keys.MARK):
        assert found is ANYBODY


@given(seeds, configured, st.integers(0, 10_000))
def test_a_revoked_key_opens_nothing_also_where_none_is_needed(seed: int, own: str | None, now: int) -> None:
    key = new_key(seed)
    assert keys.who(key, NOTHING, own, known(keys.revoked(row("laptop", key), 500)), now, keyless=own is None) is None


@given(seeds, st.integers(0, 100_000), st.integers(0, 200_000))
def test_a_rotated_key_is_good_for_as_long_as_it_was_left(seed: int, keep: int, after: int) -> None:
    old, new = new_key(seed), new_key(seed + 1)
    rotated = keys.rotated(row("laptop", old), new, 1_000, keep)
    table = known(rotated)
    assert keys.who(new, NOTHING, None, table, 1_000 + after, keyless=True) is not None
    assert (keys.who(old, NOTHING, None, table, 1_000 + after, keyless=True) is not None) == (after < keep)
    gone = known(keys.revoked(rotated, 1_500))
    assert keys.who(new, NOTHING, None, gone, 1_000, keyless=True) is None
    assert keys.who(old, NOTHING, None, gone, 1_000, keyless=True) is None


@given(st.lists(st.sampled_from(["revoke", "rotate", "change"]), min_size=1), st.integers(0, 50))
def test_each_change_of_a_key_can_be_told_from_before_also_if_the_clock_stands(acts: list[str], back: int) -> None:
    one = row("laptop", new_key(0), now=1_000)
    for number, act in enumerate(acts):
        before = one.changed_at
        try:
            match act:
                case "revoke":
                    one = keys.revoked(one, 1_000 - back)
                case "rotate":
                    one = keys.rotated(one, new_key(number + 1), 1_000 - back)
                case _:
                    one = keys.under(one, KeyTerms(owner="ada"), 1_000 - back)
        except KeyRefused:
            assert one.revoked_at is not None
            continue
        assert one.changed_at > before


@given(seeds)
def test_a_key_is_nowhere_in_what_is_kept_shown_or_logged_of_it(seed: int) -> None:
    key = new_key(seed)
    one = row("laptop", key, KeyTerms(owner="ada"))
    secret = key.removeprefix(keys.MARK)[keys.LOOKUP_CHARS :]
    kept = json.dumps([keys.table_of(keys.known_key(one)), str(one)])
    assert secret not in kept
    for words in (key, f"Bearer {key}", f"wrong key {key}.", json.dumps({"a": key})):
        assert secret not in Redactor().redact(words)
        assert MASK in Redactor().redact(words)


# ------------------------------------------------------------------ whom it speaks for


@given(headers, st.sampled_from(["", "ada", "family"]))
def test_a_key_that_may_not_name_users_speaks_for_its_owner_whatever_a_request_says(
    said: dict[str, str], owner: str
) -> None:
    assert caller("laptop", KeyTerms(owner=owner), said).person == owner


@given(headers)
def test_a_front_end_that_names_nobody_asks_for_nobody(said: dict[str, str]) -> None:
    found = caller("webui", KeyTerms(owner="family", names_users=True), said)
    names = [said.get(one, "").strip() for one in ("X-Outspoken-User", "X-OpenWebUI-User-Id", "X-OpenWebUI-User-Email")]
    if not any(names):
        assert found.person == ""
    else:
        assert found.person == "" or found.person.startswith("family/")


@pytest.mark.parametrize("chars", [USER_CHARS, USER_CHARS + 1])
def test_a_users_name_counts_whole_or_not_at_all(chars: int) -> None:
    names = {named_user({"X-OpenWebUI-User-Id": f"{'a' * (chars - 1)}{end}"}) for end in "bc"}
    assert names == ({""} if chars > USER_CHARS else {f"{'a' * (chars - 1)}{end}" for end in "bc"})


owners = st.sampled_from(["", "a", "b", "ada"])
users = st.text(st.sampled_from("ab/%@ é"), min_size=1, max_size=6).filter(lambda text: text.strip() != "")


@given(st.tuples(owners, users), st.tuples(owners, users))
def test_different_users_of_different_owners_are_different_people(one: tuple[str, str], other: tuple[str, str]) -> None:
    def person(owner: str, user: str) -> str:
        quoted = user.replace("%", "%25")  # as a front end writes it into a header
        return caller(owner or "key", KeyTerms(owner=owner, names_users=True), {"X-OpenWebUI-User-Id": quoted}).person

    same = (one[0], one[1].strip()) == (other[0], other[1].strip())
    assert (person(*one) == person(*other)) == same


@given(
    st.sampled_from(["", "ada"]),
    st.sampled_from(["", "ada"]),
    st.sampled_from(["k1", "k2"]),
    st.sampled_from(["k1", "k2"]),
)
def test_conversations_of_one_name_are_one_only_for_one_person_or_one_key_of_nobody(
    a: str, b: str, key_a: str, key_b: str
) -> None:
    one, other = Caller(key_a, a), Caller(key_b, b)
    assert (one.realm == other.realm) == (a == b and (bool(a) or key_a == key_b))
    assert one.realm != ANYBODY.realm


# ------------------------------------------------------------------ what operators ask for


names = st.lists(st.sampled_from(["gpt", "mini", "coder"]), unique=True)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "owner": st.sampled_from(["", "ada"]), "names_users": st.booleans(), "models": names,
            "tools": st.none() | st.lists(st.sampled_from(["read_file", "todo"]), unique=True),
            "day_tokens": st.integers(0, 10**9), "day_nanos": st.integers(0, 10**12), "minute_requests": st.integers(0, 1000),
            "errors": st.none() | st.sampled_from([one.value for one in ErrorStyle]), "thinking": st.none() | st.booleans(),
        },
    )
)  # fmt: skip
def test_terms_come_back_as_they_were_asked_for_and_what_is_not_named_stays(asked: dict[str, Any]) -> None:
    there = Nameable(("gpt", "mini", "coder"), ("read_file", "todo"))
    before = KeyTerms(owner="bob", models=("gpt",), tools=(), minute_requests=7, errors=ErrorStyle.STATUS)
    terms = keys.terms_from(asked, there, before)
    kept = keys.known_key(row("laptop", new_key(1), terms)).terms
    assert kept == terms
    for name in ("owner", "models", "tools", "minute_requests", "errors"):
        if name not in asked:
            assert getattr(terms, name) == getattr(before, name)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"models": ["gpt-5-mimi"]}, "Did you mean gpt-5-mini?"),
        ({"tools": ["read_fiel"]}, "Did you mean read_file?"),
        ({"owner": "ada/bob"}, "An owner has"),
        ({"day_tokens": -1}, "a whole number"),
        ({"errors": "loud"}, "words or status"),
        ({"budget": 5}, "A key has no budget"),
    ],
)
def test_terms_that_make_no_sense_are_refused_in_words(asked: dict[str, Any], words: str) -> None:
    with pytest.raises(KeyRefused, match=words.replace("?", r"\?")):
        keys.terms_from(asked, Nameable(("gpt-5", "gpt-5-mini"), ("read_file", "write_file")))


@pytest.mark.parametrize("name", ["", "-a", "a b", "a/b", "é", "a" * 41, CONFIGURED])
def test_names_that_cannot_be_a_keys_are_refused(name: str) -> None:
    with pytest.raises(KeyRefused):
        row(name, new_key(1))


# ------------------------------------------------------------------ running gateways


async def operate(url: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    async with (
        aiohttp.ClientSession(headers=OPERATOR) as http,
        http.request("POST" if body else "GET", f"{url}/api/keys", json=body) as response,
    ):
        return await response.json()


async def add(url: str, name: str, **terms: Any) -> str:
    answer = await operate(url, {"verb": "add", "name": name, "terms": terms})
    return str(answer["secret"])


def sdk(url: str, key: str, **headers: str) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0, default_headers=headers)


async def ask(url: str, key: str, words: str, headers: Mapping[str, str] | None = None, **more: Any) -> str:
    told: list[Any] = [{"role": "user", "content": words}]
    asked: dict[str, Any] = {"model": "outspoken", **more}
    async with sdk(url, key) as made:
        client: Any = made
        found: Any = await client.chat.completions.create(messages=told, extra_headers=headers, **asked)
    return str(found.choices[0].message.content or "")


async def test_a_key_opens_the_api_and_a_revoked_one_is_refused_everywhere_at_once(tmp_path: Path) -> None:
    async with served(tmp_path, WITH_KEY) as up:
        key = await add(up.url, "laptop", owner="ada")
        assert "hello" in await ask(up.url, key, "hello")
        assert "hello" in await ask(up.url, CONFIGURED_KEY, "hello")
        headers = {"Authorization": f"Bearer {key}"}
        async with aiohttp.ClientSession(headers=headers) as http:
            page = http.get(f"{up.url}/api/sessions/page-0001/events")
            async with page as events, http.get(f"{up.url}/api/about") as about:
                assert (about.status, events.status) == (200, 200)
                revoked = await operate(up.url, {"verb": "revoke", "name": "laptop"})
                assert revoked["key"]["revoked_at"]
                await events.content.read()  # the open page is let go
            for path in ("/v1/models", "/api/about", "/api/sessions/page-0001/events"):
                async with http.get(up.url + path) as response:
                    assert response.status == 401, path
        with pytest.raises(openai.AuthenticationError):
            await ask(up.url, key, "hello")
        assert "hello" in await ask(up.url, CONFIGURED_KEY, "hello")


async def test_where_no_key_is_needed_a_key_of_ours_still_has_to_be_good(tmp_path: Path) -> None:
    async with served(tmp_path) as up:
        async with (
            aiohttp.ClientSession() as http,
            http.post(f"{up.url}/api/keys", json={"verb": "add", "name": "laptop"}) as response,
        ):
            key = (await response.json())["secret"]
        assert "hello" in await ask(up.url, key, "hello")
        assert "hello" in await ask(up.url, "none", "hello")
        with pytest.raises(openai.AuthenticationError):
            await ask(up.url, key[:-1] + ("A" if key[-1] != "A" else "B"), "hello")


async def test_a_rotated_key_gives_way_to_the_new_one(tmp_path: Path) -> None:
    async with served(tmp_path, WITH_KEY) as up:
        old = await add(up.url, "laptop")
        new = str((await operate(up.url, {"verb": "rotate", "name": "laptop", "keep_seconds": 3600}))["secret"])
        assert "hello" in await ask(up.url, old, "hello")
        assert "hello" in await ask(up.url, new, "hello")
        newest = str((await operate(up.url, {"verb": "rotate", "name": "laptop"}))["secret"])
        assert "hello" in await ask(up.url, newest, "hello")
        for gone in (old, new):
            with pytest.raises(openai.AuthenticationError):
                await ask(up.url, gone, "hello")


async def test_keys_outlive_a_restart_and_names_are_given_once(tmp_path: Path) -> None:
    async with served(tmp_path, WITH_KEY) as up:
        key = await add(up.url, "laptop", owner="ada", minute_requests=100)
        await operate(up.url, {"verb": "revoke", "name": "laptop"})
        other = await add(up.url, "desktop", owner="ada")
    async with served(tmp_path, WITH_KEY) as up:
        assert "hello" in await ask(up.url, other, "hello")
        with pytest.raises(openai.AuthenticationError):
            await ask(up.url, key, "hello")
        again = await operate(up.url, {"verb": "add", "name": "laptop"})
        assert "given once" in again["error"]["message"]
        tables = {one["name"]: one for one in (await operate(up.url))["keys"]}
        assert tables["laptop"]["minute_requests"] == 100
        assert tables["desktop"]["used_at"]
    async with served(tmp_path, WITH_KEY) as up:
        assert {one["name"]: one["used_at"] for one in (await operate(up.url))["keys"]}["desktop"]


async def test_memory_goes_by_the_keys_owner_and_by_nothing_that_a_request_says(tmp_path: Path) -> None:
    async with served(tmp_path, WITH_KEY) as up:
        ada, tablet = await add(up.url, "laptop", owner="ada"), await add(up.url, "tablet", owner="ada")
        bob, nobody = await add(up.url, "bob", owner="bob"), await add(up.url, "ci")
        await ask(up.url, ada, "remember that my dog is called Rex")
        assert "Rex" in await ask(up.url, ada, "what do you remember")
        assert "Rex" in await ask(up.url, tablet, "what do you remember")
        assert "Rex" not in await ask(up.url, bob, "what do you remember", user="ada")
        assert "Rex" not in await ask(up.url, bob, "what do you remember", {"X-OpenWebUI-User-Id": "ada"})
        assert "not offered here" in await ask(up.url, nobody, "remember that my cat is called Tom", user="ada")


async def test_a_front_end_names_its_users_and_they_share_nothing(tmp_path: Path) -> None:
    async with served(tmp_path, WITH_KEY) as up:
        webui = await add(up.url, "webui", owner="family", names_users=True)
        other = await add(up.url, "other", owner="work", names_users=True)
        one, two = {"X-OpenWebUI-User-Id": "u-1"}, {"X-OpenWebUI-User-Id": "u-2"}
        await ask(up.url, webui, "remember that my dog is called Rex and then write a.txt: mine", one)
        assert "Rex" in await ask(up.url, webui, "what do you remember", one)
        assert "a.txt" in await ask(up.url, webui, "list files", one)
        for key, headers in ((webui, two), (other, one), (webui, NOTHING)):
            assert "Rex" not in await ask(up.url, key, "what do you remember", headers)
            assert "a.txt" not in await ask(up.url, key, "list files", headers)
        async with sdk(up.url, webui, **one) as client:
            said = await client.chat.completions.create(model="outspoken", messages=[{"role": "user", "content": "x"}])
        for key, headers, status in ((webui, two, 404), (other, one, 404), (webui, NOTHING, 404), (webui, one, 200)):
            shown = {"Authorization": f"Bearer {key}", **headers}
            url = f"{up.url}/v1/chat/completions/{said.id}/cancel"
            async with aiohttp.ClientSession(headers=shown) as http, http.post(url) as response:
                assert response.status == status, "nobody stops what somebody else asked, with the same key either"


async def test_conversations_and_idempotency_keys_are_the_callers_own(tmp_path: Path) -> None:
    async with served(tmp_path, WITH_KEY) as up:
        one, two = await add(up.url, "one", owner="ada"), await add(up.url, "two")
        named = {"X-Outspoken-Session": "work", "Idempotency-Key": "K"}
        ids = set[str]()
        for key in (one, two, CONFIGURED_KEY):
            async with sdk(up.url, key) as client:
                got = [
                    await client.chat.completions.create(
                        model="outspoken", messages=[{"role": "user", "content": "hello"}], extra_headers=named
                    )
                    for _ in range(2)
                ]
            assert got[0].id == got[1].id
            ids.add(got[0].id)
        assert len({one.split("-")[1] for one in ids}) == 3, "each has a session of its own"


async def test_a_request_of_nobody_leaves_no_workspace(tmp_path: Path) -> None:
    async with served(tmp_path, WITH_KEY) as up:
        key = await add(up.url, "ci")
        assert "a.txt" in await ask(up.url, key, "write a.txt: hello and then list files")
        assert "a.txt" not in await ask(up.url, key, "list files")
        until = time.monotonic() + 20
        while [*(tmp_path / "workspaces" / ".nameless").glob("*")] and time.monotonic() < until:
            await asyncio.sleep(0.05)
        assert not [*(tmp_path / "workspaces" / ".nameless").glob("*")]
        assert not [*tmp_path.glob("workspaces/*/a.txt")]


# ------------------------------------------------------------------ the command


@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
def test_the_command_makes_and_revokes_keys_while_the_gateway_runs_and_while_it_does_not(
    tmp_path: Path, engine: str, request: pytest.FixtureRequest
) -> None:
    where = request.getfixturevalue("sqlite" if engine == "sqlite" else "postgres")
    env = environment(
        tmp_path / "home", free_port(), OUTSPOKEN_SERVER__API_KEY=CONFIGURED_KEY, OUTSPOKEN_STORAGE__URL=_url(where)
    )
    made = run(["keys", "add", "early", "--owner", "ada", "--json"], env)
    assert made.returncode == 0, made.stderr
    early = json.loads(made.stdout)["key"]
    url = f"http://127.0.0.1:{env['OUTSPOKEN_SERVER__PORT']}"
    with daemon(env, tmp_path / "log"):
        assert "hello" in asyncio.run(ask(url, early, "hello"))
        said = run(["keys", "add", "late", "--owner", "bob", "--per-minute", "60"], env)
        assert said.returncode == 0, said.stderr
        late = said.stdout.splitlines()[-1]
        assert "hello" in asyncio.run(ask(url, late, "hello"))
        listed = run(["keys", "list"], env).stdout
        assert "early" in listed
        assert "late" in listed
        assert "60 requests" in run(["keys", "show", "late"], env).stdout
        assert run(["keys", "show", "nobody"], env).returncode == 1
        assert run(["keys", "add", "late"], env).returncode == 1
        assert run(["keys", "revoke", "late"], env).returncode == 0
        with pytest.raises(openai.AuthenticationError):
            asyncio.run(ask(url, late, "hello"))
        for text in (listed, (tmp_path / "log").read_text()):
            assert early not in text
            assert late not in text
    assert run(["keys", "revoke", "early"], env).returncode == 0
    with daemon(env, tmp_path / "log2"), pytest.raises(openai.AuthenticationError):
        asyncio.run(ask(url, early, "hello"))


def _url(where: str) -> str:
    return where if "://" in where else f"sqlite:///{where}"


async def test_a_key_that_is_revoked_in_the_database_by_somebody_else_is_refused_soon(
    postgres: str, tmp_path: Path
) -> None:
    from agent_core.ports import SystemClock, SystemIds
    from agent_core.store.store import open_store
    from gateway.people.keyring import Keyring

    clock = SystemClock()
    async with served(tmp_path, {**WITH_KEY, "OUTSPOKEN_STORAGE__URL": postgres}) as up:
        key = await add(up.url, "laptop")
        assert "hello" in await ask(up.url, key, "hello")
        async with open_store(postgres, clock=clock, ids=SystemIds(clock), version="test") as store:
            ring = Keyring(store, clock, SystemIds(clock))
            await ring.open()
            await ring.revoke("laptop")
        async with asyncio.timeout(20):
            while True:
                try:
                    await ask(up.url, key, "hello")
                except openai.AuthenticationError:
                    break
                await asyncio.sleep(0.1)


class Table:
    """Keys that others make as well."""

    def __init__(self) -> None:
        self.rows: list[Any] = []
        self.looks = 0
        self.away = False

    async def state(self) -> tuple[int, int]:
        self.looks += 1
        await asyncio.sleep(0)
        if self.away:
            raise StorageUnavailable("away")
        return len(self.rows), sum(one.changed_at for one in self.rows)

    async def all(self) -> list[Any]:
        return [*self.rows]


async def test_a_key_that_another_gateway_has_made_is_learnt_and_whoever_guesses_has_few_looks_made() -> None:
    from types import SimpleNamespace
    from typing import cast

    from agent_core.ports import SystemClock, SystemIds
    from gateway.people.keyring import LEARN_SECONDS, Keyring
    from gateway.sharing.portion import Portion

    clock, table = SystemClock(), Table()
    store = cast("Any", SimpleNamespace(apikeys=table))
    ring = Keyring(store, clock, SystemIds(clock), portion=Portion(whole=False))
    await ring.open()
    await asyncio.gather(*(ring.learn(new_key(seed)) for seed in range(500)))
    assert table.looks == 1, "all of them came before it began"
    began = time.monotonic()
    keys = [new_key(10_000 + seed) for seed in range(5)]
    for seed, key in enumerate(keys):
        table.rows.append(row(f"laptop{seed}", key))
        guesses = [asyncio.create_task(ring.learn(new_key(seed))) for seed in range(50)]
        await ring.learn(key)
        found = ring.who(key, NOTHING)
        assert found is not None
        assert found.key == f"laptop{seed}"
        await asyncio.gather(*guesses)
    assert table.looks <= 2 + (time.monotonic() - began) / LEARN_SECONDS
    looks = table.looks
    for shown in ("", "swordfish", keys[0], f"{keys[0]}x"):
        await ring.learn(shown)
    assert table.looks == looks, "what is known, or no key of ours, is not looked for"


async def test_while_nobody_can_look_a_key_that_is_not_known_is_not_told_to_be_wrong() -> None:
    from types import SimpleNamespace
    from typing import cast

    from agent_core.ports import SystemClock, SystemIds
    from gateway.people.keyring import Keyring
    from gateway.sharing.portion import Portion

    clock, table = SystemClock(), Table()
    ring = Keyring(cast("Any", SimpleNamespace(apikeys=table)), clock, SystemIds(clock), portion=Portion(whole=False))
    await ring.open()
    table.rows.append(row("laptop", key := new_key(1)))
    table.away = True
    found = await asyncio.gather(*(ring.learn(key) for _ in range(3)), return_exceptions=True)
    assert [type(one) for one in found] == [StorageUnavailable] * 3, "whoever waited for the look as well"
    table.away = False
    await ring.learn(key)
    assert ring.who(key, NOTHING) is not None


@pytest.mark.parametrize(("status", "away"), [(401, True), (401, False), (200, True)])
async def test_a_key_of_which_nobody_can_be_asked_is_refused_for_now_and_nothing_else_is(
    status: int, away: bool
) -> None:
    async def learn(_: str) -> None:
        if away:
            raise StorageUnavailable("away")

    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=status)

    asked = make_mocked_request("GET", "/", headers={"Authorization": f"Bearer {new_key(1)}"})
    if away and status == 401:
        with pytest.raises(StorageUnavailable):
            await introducing(learn)(asked, answer)
    else:
        assert (await introducing(learn)(asked, answer)).status == status
