"""What the console promises whoever looks and acts, each rule by itself: trouble is told until it is over, nothing is rung for nobody, and what another
gateway runs is acted on there. Without a gateway."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from contextlib import aclosing, contextmanager
from types import SimpleNamespace
from typing import Any, cast

import orjson
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from adapters.delivery.reconcile import Hand
from adapters.http.routes import HttpRoute
from agent_core.bell import Bell
from agent_core.jsonvalue import Json
from agent_core.ports import SystemIds
from agent_core.store.deliveries.rows import Delivery
from agent_core.store.overview import SpentBy
from agent_core.store.store import Damaged, StorageUnavailable
from agent_core.text.redaction import Redactor
from gateway.console import reading
from gateway.console.access import Access
from gateway.console.acting import Acting, CannotAct, PartName
from gateway.console.looking import Board
from gateway.console.reading import MOST_FOUND, TextReading
from gateway.console.server import Console
from gateway.console.snapshot import MOST_SPENDERS, trends_json
from gateway.console.streams import KEEP_ALIVE_SECONDS, Streams
from gateway.sharing.portion import Portion
from tests.agent_core.turns import gives
from tests.store.support import FakeClock

NONE: Any = None


class NoMore(Exception):
    """The page is closed."""


class Looks:
    """What a board shows, look for look: a word for its one section, and what is wrong; ``away``: nothing can be read."""

    def __init__(self, *looks: tuple[str, str], clock: FakeClock) -> None:
        self.looks, self.clock, self.trouble = [*looks], clock, ""

    @contextmanager
    def watching(self) -> Generator[Bell]:
        yield Bell()

    async def sections(self) -> dict[str, bytes]:
        word, self.trouble = self.looks.pop(0)
        if word == "away":
            raise StorageUnavailable("It is away.")
        return {"turns": orjson.dumps(word)}

    async def stirred(self, _: Bell) -> None:
        self.clock.now += 1_000
        if not self.looks:
            raise NoMore


async def sent(*looks: tuple[str, str]) -> list[tuple[str, Any]]:
    """What a page is sent."""
    clock = FakeClock()
    streams = Streams(cast("Any", Looks(*looks, clock=clock)), NONE, clock)
    told: list[tuple[str, Any]] = []
    events: AsyncGenerator[bytes] = streams.live()
    async with aclosing(events):
        try:
            async for event in events:
                name, _, data = event.decode().strip().partition("\n")
                body = orjson.loads(data.removeprefix("data: "))
                told.append((name.removeprefix("event: "), body.get("words") or body.get("turns")))
        except NoMore:
            pass
    return told


@pytest.mark.parametrize("wrong", [("a", "Turns cannot be read."), ("away", "")])
async def test_what_is_wrong_is_told_at_once_and_its_end_as_well_though_nothing_else_changed(
    wrong: tuple[str, str],
) -> None:
    words = wrong[1] or "It is away."
    fine = ("a", "")
    assert await sent(fine, wrong, wrong, fine, fine) == [("sections", "a"), ("trouble", words), ("sections", None)]
    assert await sent(fine, wrong, ("b", "")) == [("sections", "a"), ("trouble", words), ("sections", "b")]


async def test_who_watches_hears_something_now_and_then() -> None:
    quiet = [("a", "")] * (2 * round(KEEP_ALIVE_SECONDS) + 1)
    assert await sent(*quiet) == [("sections", "a"), ("sections", None), ("sections", None)]
    wrong = [("away", "")] * (round(KEEP_ALIVE_SECONDS) + 1)
    assert await sent(*wrong) == [("trouble", "It is away.")] * 2


async def test_nobody_is_rung_who_watches_no_more() -> None:
    rung: set[Bell] = set()
    changes = SimpleNamespace(subscribe=rung.add, unsubscribe=rung.discard)
    board = Board(cast("Any", SimpleNamespace(store=SimpleNamespace(changes=changes))))
    with board.watching() as one, board.watching() as other:
        assert rung == {one, other}
    assert not rung


@pytest.mark.parametrize("hand", Hand)
@pytest.mark.parametrize("does", [True, False])
async def test_what_another_gateway_runs_is_neither_shown_beforehand_nor_done_here(hand: Hand, *, does: bool) -> None:
    surface = "telegram/1/7"
    found = Delivery("s_1", cast("Any", SimpleNamespace(surface=surface)))

    async def one(*_: object) -> Delivery:
        return found

    store: Any = SimpleNamespace(deliveries=SimpleNamespace(one=one))
    acting = Acting(store, NONE, NONE, Portion(whole=False), FakeClock(), SystemIds(FakeClock()))
    name = PartName(surface, "t_1", "a", 0)
    with pytest.raises(CannotAct, match="gateway") as refused:
        await (acting.act("ops", name, hand, "", "mark") if does else acting.preview(name, hand, ""))
    assert refused.value.status == 409


@pytest.mark.parametrize(("fit", "whole"), [(MOST_FOUND - 1, True), (MOST_FOUND, True), (MOST_FOUND + 1, False)])
async def test_a_search_says_that_it_is_whole_only_if_nothing_that_fits_is_left_out(
    monkeypatch: pytest.MonkeyPatch, fit: int, *, whole: bool
) -> None:
    async def found(_: TextReading, some: list[str], __: list[str]) -> tuple[list[str], bool]:
        return [one for one in some if one == "fits"], True

    async def nothing(*_: object) -> None: ...

    async def turns(_: int) -> list[str]:
        return ["other"] * 20 + ["fits"] * fit

    store = SimpleNamespace(overview=SimpleNamespace(turns=turns), deliveries=SimpleNamespace(act=nothing))
    clock = FakeClock()
    monkeypatch.setattr(TextReading, "_found", found)
    told: Any = await TextReading(cast("Any", store), NONE, NONE, clock, SystemIds(clock)).search("operator", "word")
    assert (len(told["found"]), told["whole"]) == (min(fit, MOST_FOUND), whole)


async def test_a_search_goes_past_what_is_damaged_and_says_that_it_is_not_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    summaries = [
        SimpleNamespace(session="s_1", number=n, turn=f"t_{n}", key="web/page/c//", exit="", opened_at=1)
        for n in (1, 2, 3)
    ]

    async def nothing(*_: object) -> None: ...

    async def turns(_: int) -> list[Any]:
        return summaries

    async def told(session: str, number: int, limit: int, *, newest_first: bool) -> list[Any]:
        assert (session, limit, newest_first) == ("s_1", 1, False)
        if number == 1:
            raise Damaged("These rows are damaged.")
        return [SimpleNamespace(turn=f"t_{number + 1}")]

    def said_in(turn: Any) -> list[str]:
        return [f"a word in {turn.turn}"]

    monkeypatch.setattr(reading, "said_in", said_in)
    store = SimpleNamespace(overview=SimpleNamespace(turns=turns), deliveries=SimpleNamespace(act=nothing))
    names, clock = SimpleNamespace(learn=nothing, of=gives("Ada")), FakeClock()
    sights: Any = SimpleNamespace(turns=told)
    searching = TextReading(cast("Any", store), sights, cast("Any", names), clock, SystemIds(clock))
    found: Any = await searching.search("operator", "word")
    assert ([one["id"] for one in found["found"]], found["whole"]) == (["t_1", "t_3"], False)


@pytest.mark.parametrize(
    ("error", "words"), [(Damaged("x"), "damaged"), (StorageUnavailable("x"), "cannot store anything")]
)
async def test_why_nothing_can_be_read_is_told_as_it_is(error: Exception, words: str) -> None:
    async def title(*_: object) -> str:
        raise error

    reads: Any = SimpleNamespace(title=title)
    console = Console(NONE, NONE, NONE, reads, Access(None, behind_proxy=False), FakeClock())
    app = web.Application()
    app.add_routes([HttpRoute.CONSOLE_TITLE.served(console.routes()[HttpRoute.CONSOLE_TITLE])])
    async with (
        TestClient(TestServer(app)) as http,
        http.post("/console/api/title", json={"session": "s_1"}) as response,
    ):
        assert response.status == 503
        assert words in (await response.json())["error"]["message"]


def test_nothing_of_what_servers_of_tools_say_shows_a_secret() -> None:
    secret = "kQ8vZ2mXw4RtYp6LbNc9HdJs"
    stands: dict[str, Json] = {
        "server": "mail", "state": "down", "about": f"by {secret}", "words": f"it said {secret}", "stderr": ["a", f"bad key {secret}"], "tools": [{"name": "post"}],
    }  # fmt: skip
    board: Any = SimpleNamespace(sources=SimpleNamespace(servers=gives([stands]), redactor=Redactor.of([secret])))
    (shown,) = cast("Any", Board._servers(board))
    assert secret not in orjson.dumps(shown).decode()
    assert shown["last"].startswith("bad key ")


def test_who_used_most_is_listed_and_the_others_are_left_out() -> None:
    spent = [SpentBy("[]", f"key{number}", "m", 1, number) for number in range(2 * MOST_SPENDERS)]
    told: Any = trends_json((), spent, gives("somebody"))
    most = [(f"key{number}", number) for number in reversed(range(MOST_SPENDERS, 2 * MOST_SPENDERS))]
    assert [(one["name"], one["tokens"]) for one in told["spent"]["key"]] == most
    assert [(one["tokens"], one["turns"]) for one in told["spent"]["model"]] == [(sum(range(len(spent))), len(spent))]
