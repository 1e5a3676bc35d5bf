"""A look from outside (`outspoken doctor`) takes nothing away from a gateway that runs; and who sets a bot up is led to the end of what it needs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from adapters.checks.findings import Seen, Severity
from adapters.checks.probe import ServerReply
from adapters.contract.platforms import CheckContext
from adapters.discord.check import FEW_STARTS, DiscordSeen, judged_starts
from adapters.discord.platform import Discord
from adapters.slack.check import SlackSeen, judged_hello
from adapters.slack.platform import Slack
from adapters.telegram.check import _Way, judged_me
from adapters.telegram.platform import Telegram
from adapters.telegram.wire import AskedToWait
from tests.agent_core.turns import gives


@pytest.mark.parametrize("runs", [True, False])
@pytest.mark.parametrize(("section", "takes"), [(Slack, "open_socket"), (Telegram, "poll")])
async def test_what_would_be_given_to_whoever_looks_is_asked_for_only_where_no_gateway_runs(
    monkeypatch: pytest.MonkeyPatch, section: type[Slack | Telegram], takes: str, *, runs: bool
) -> None:
    asked: list[dict[str, Any]] = []

    async def check(_section: object, **how: Any) -> Seen:
        asked.append(how)
        return Seen(())

    name = section.__name__.lower()
    monkeypatch.setattr(f"adapters.{name}.check.check", check)
    (look,) = section().checks(CheckContext({}, runs))
    await look.look()
    assert [cast("bool", how[takes]) for how in asked] == [not runs]


@pytest.mark.parametrize(
    ("open_sockets", "others"), [(1, ""), (2, "1 other open socket:"), (3, "2 other open sockets:")]
)
def test_the_socket_by_which_it_is_looked_is_no_other_one(open_sockets: int, others: str) -> None:
    found = judged_hello({"type": "hello", "num_connections": open_sockets}, "https://e.org")
    assert found.level is (Severity.WARNING if others else Severity.OK)
    assert others in found.what


@pytest.mark.parametrize(("left", "told"), [(0, True), (FEW_STARTS - 1, True), (FEW_STARTS, False), (None, False)])
def test_that_few_sessions_may_begin_is_told_before_none_may(left: int | None, *, told: bool) -> None:
    found = judged_starts(ServerReply(200, {}, {"session_start_limit": {"remaining": left}}))
    assert [one.level for one in found] == ([Severity.WARNING] if told else [])


@pytest.mark.parametrize(
    ("section", "seen", "needs"),
    [
        (Slack, SlackSeen((), workspace="w"), "slack.scopes"),
        (Discord, DiscordSeen((), application="7"), "discord.intent"),
    ],
)
def test_whoever_sets_a_bot_up_may_mend_what_it_cannot_do_without(
    section: type[Slack | Discord], seen: Seen, needs: str
) -> None:
    mended: list[str] = []

    def look(work: Any) -> Seen:
        work.close()
        return seen

    def until(found: Seen, name: str, _again: object) -> Seen:
        mended.append(name)
        return found

    def secret(*_: object, needed: bool) -> str:
        del needed
        return "given"

    def tried(attempt: Callable[[], Any]) -> Any:
        return attempt()

    asker = SimpleNamespace(
        asks=False, say=gives(None), value=gives("given"), secret=secret, tried=tried, look=look, until=until
    )
    done = section().ask(cast("Any", asker))
    assert done is not None
    assert mended == [needs]


@pytest.mark.parametrize("variable", ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY"])
@pytest.mark.parametrize("own", ["", "http://proxy.example:3128"])
async def test_a_proxy_that_discords_library_does_not_heed_is_told_unless_it_has_one_of_its_own(
    own: str, variable: str
) -> None:
    around = CheckContext({variable: "http://other.example:3128"}, runs=False)
    _, look = Discord(proxy=own).checks(around)
    found = (await look.look()).findings
    assert [one.check for one in found] == ([] if own or variable == "HTTP_PROXY" else ["discord.proxy"])


async def test_a_telegram_that_asks_to_wait_is_said_to_do_so() -> None:
    """And not that the connection broke, for which nobody would find a cause."""

    async def asks(*_: object, **__: object) -> Any:
        raise AskedToWait(7)

    way = _Way(cast("Any", SimpleNamespace(do_request=asks, date="")), "https://api.telegram.example/bot1:a")
    found = judged_me(await way.ask("getMe"), wants_all=False, own_server=False)
    assert [(one.level, "asks for fewer calls for 7 s" in one.what) for one in found] == [(Severity.WARNING, True)]


async def test_a_telegram_that_does_not_answer_in_time_is_said_to_do_so() -> None:
    """Whoever sets a bot up is asked for its token again, and not shown a traceback."""

    async def asks(*_: object, **__: object) -> Any:
        await asyncio.Event().wait()

    way = _Way(cast("Any", SimpleNamespace(do_request=asks, date="")), "https://api.telegram.example/bot1:a")
    found = judged_me(await way.ask("getMe", seconds=0.01), wants_all=False, own_server=False)
    assert [(one.level, "there was no answer in time" in one.what) for one in found] == [(Severity.PROBLEM, True)]
