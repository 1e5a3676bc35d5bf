"""What commands of a conversation do, each beside a turn that runs here, in another chat, or not at all: below the chat, with what they ask and change noted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from adapters.contract.base import FromChat, SessionKey, StopOutcome
from adapters.contract.chat import Attachment, AttachmentKind, ChatAddress, ChatKind, ChatOrigin, ChatPerson
from adapters.delivery.parts import call_mark
from agent_core.jsonvalue import Json
from agent_core.messages import InputMessage
from agent_core.rules.consents import Lasting
from agent_core.store.people.rows import PlaceRow
from agent_core.store.sessions.rows import OwnersChange, SessionChange
from agent_core.turn.events import Verdict
from gateway.commands.buttons import Buttons
from gateway.commands.carrying import CommandReply, Request
from gateway.commands.conversation import (
    CUT_OFF,
    STOPPED_THERE,
    ConversationCommands,
    asked_in,
    cut_off,
    in_other_words,
)
from gateway.commands.registry import BY_NAME
from gateway.config.types import SessionPolicy
from gateway.delivery.owners import Owner
from gateway.limits.agents import PLAIN, Agent
from gateway.limits.standing import Standings
from gateway.queues.prefs import Prefs
from gateway.queues.queue import Waiting
from tests.agent_core.turns import gives

KEY = SessionKey("telegram", "1", "2")
HERE, THERE = ChatAddress("telegram", "1", "2"), ChatAddress("discord", "1", "9")
ANN = ChatPerson("2", "Ann")


def wrote(words: str, address: ChatAddress = HERE, *, root: str = "", kind: ChatKind = ChatKind.PRIVATE) -> FromChat:
    return FromChat(
        account=f"{address.platform}/1", platform_key=words, session=KEY, input=(InputMessage(words),), surface=address.platform,
        memory_scope="", chat=ChatOrigin(address, kind, ANN, words, root=root),
    )  # fmt: skip


def waiting(number: int, words: str, address: ChatAddress = HERE) -> Waiting:
    return Waiting(number, number, wrote(words, address), 0)


def itself(one: Waiting) -> Waiting:
    return one


class Chat:
    """A conversation, with what its commands ask of the rest of the gateway noted in the order in which it is asked."""

    def __init__(self, *messages: Waiting, running: Waiting | None = None) -> None:
        self.did: list[object] = []
        self.told: list[tuple[ChatAddress, str]] = []
        self.turns: list[Any] = []
        self.since = 0
        self.policy: str | None = None
        self.undone: dict[str, int] = {}
        self.shown = True
        self.taken: set[str] = set()
        bubbles = [
            SimpleNamespace(call="c1", key="", options=(), kind=""),
            SimpleNamespace(call="q1", key="k", options=("red", "green"), kind=""),
        ]
        seen = SimpleNamespace(current_view=lambda: SimpleNamespace(bubbles=bubbles))
        driver = SimpleNamespace(identity=SimpleNamespace(turn="t_9"), seen=seen, answer=self.answer)
        self.running: Any = None
        if running is not None:
            self.running = SimpleNamespace(
                driver=driver, messages=(running,), same_chat=self.same_chat, takes=self.same_chat
            )
        self.queue: Any = SimpleNamespace(
            running=self.running, waiting=[*messages], key=KEY.text(), session="s1", epoch=3, quiet=running is None,
            ticket_of=itself, prefs=Prefs(), prefs_loaded=True,
        )  # fmt: skip
        known: Callable[[str], Any] = {KEY.text(): self.queue}.get
        self.queues: Any = SimpleNamespace(
            known=known, of=gives(self.queue), at=gives(self.queue),
            forget_memory=self.notes("forgets"), pasts=SimpleNamespace(drop=self.notes("drops")),
        )  # fmt: skip
        self.stopping: Any = SimpleNamespace(
            queues=self.queues,
            stop=self.stop,
            stop_message=self.stop_message,
            approve=self.approve,
            approvers=("asker",),
        )
        held = SimpleNamespace(take_out=self.take_out)
        self.messages: Any = SimpleNamespace(held=held, submit_or_hold=self.submit, submit=self.submit)
        self.outbox: Any = SimpleNamespace(words=SimpleNamespace(say=self.say))
        self.store: Any = SimpleNamespace(
            sessions=SimpleNamespace(one=self.session, change=self.change),
            turns=SimpleNamespace(one=self.turn, latest=self.latest, places=self.places, openings=self.openings),
            deliveries=SimpleNamespace(shown=self.is_shown),
            inbox=SimpleNamespace(by_key=self.by_key, inputs=self.inputs),
        )
        self.agents = {"coder": Agent("coder"), "ops": Agent("ops", people=("telegram/8",))}
        self.commands = ConversationCommands(
            cast("Any", SimpleNamespace(queues=self.queues, accept=self.accept)), self.stopping,
            cast("Any", SimpleNamespace(messages_of=self.messages_of)), cast("Any", SimpleNamespace(names=["gpt", "mini"])),
            self.messages, self.outbox, self.store, self.leave, Standings(self.agents),
        )  # fmt: skip
        self.buttons = Buttons(self.commands, cast("Any", None), self.messages, self.stopping, self.store)

    def notes(self, what: object) -> Callable[..., None]:
        def note(*_: object) -> None:
            self.did.append(what)

        return note

    def same_chat(self, inbound: Any) -> bool:
        return inbound.chat.address == self.running.messages[0].inbound.chat.address

    async def stop(self, key: SessionKey) -> StopOutcome:
        self.did.append(("stop", key))
        return StopOutcome(stopped=True, words="Stopped.")

    async def stop_message(self, ticket: Any) -> StopOutcome:
        self.did.append(("drop", ticket.inbox_id))
        self.queue.waiting = [one for one in self.queue.waiting if one is not ticket]
        return StopOutcome(stopped=True, words="Taken out.")

    async def approve(self, *given: object) -> bool:
        self.did.append(("approve", *given[1:]))
        return True

    async def answer(self, *given: str) -> str:
        self.did.append(("answer", *given))
        return ""

    def take_out(self, _: str, *, room: bool) -> int:
        self.did.append(("held", room))
        return 0

    async def submit(self, inbound: Any, key: str, words: str, policy: object) -> bool:
        self.did.append(("submit", key, words, policy))
        return True

    async def say(self, address: ChatAddress, _owner: object, _origin: str, content: Any) -> None:
        self.told.append((address, content.body.text))

    async def session(self, _: str) -> Any:
        return SimpleNamespace(policy=self.policy, since=self.since)

    async def change(self, _session: str, _epoch: int, change: SessionChange) -> None:
        self.did.append(change)

    async def turn(self, name: str) -> Any:
        return next((one for one in self.turns if one.turn == name), None)

    async def latest(self, _: str, count: int) -> list[Any]:
        return self.turns[-count:]

    async def places(self, _: str) -> list[Any]:
        return [
            SimpleNamespace(turn=one.turn, number=one.number, parent=one.number - 1, removed=False, undone=0)
            for one in self.turns
        ]

    async def openings(self, _: object) -> dict[str, Any]:
        return {}

    async def messages_of(self, turn: str) -> list[Waiting]:
        return [waiting(1, f"{turn} first"), waiting(2, f"{turn} second")]

    async def is_shown(self, _address: str, _turn: str) -> bool:
        return self.shown

    async def by_key(self, _account: str, key: str) -> str | None:
        return key if key in self.taken else None

    async def inputs(self, *_: str) -> list[Any]:
        return []

    async def accept(
        self, inbound: Any, *, changing: Callable[[], Awaitable[OwnersChange | None]] | None = None
    ) -> None:
        self.did.append(("asks", inbound.platform_key, inbound.input[0].content, changing and await changing()))

    async def leave(self, _: Request) -> CommandReply:
        return CommandReply("left")

    def with_turns(self, *undone: int) -> Chat:
        self.turns = [
            SimpleNamespace(turn=f"t_{n}", session="s1", number=n, undone=gone, removed="", first_message=n)
            for n, gone in enumerate(undone, 1)
        ]
        return self

    async def do(
        self, name: str, words: str = "", *, own: SessionKey = KEY, inbox_id: int = 50, **chat: Any
    ) -> CommandReply:
        inbound = wrote(f"/{name}", **chat)
        request = Request(BY_NAME[name], words, inbound, inbox_id, Owner("s1", 3), admin=False, own=own)
        handlers = {**self.commands.handlers(), "press": self.buttons.press}
        return await handlers[name](request)


# ---------------------------------------------------------------------- stopping


@pytest.mark.parametrize("words", ["", "all", "ALL "])
@pytest.mark.parametrize("running", [None, HERE, THERE])
async def test_stop_takes_what_waits_only_if_that_was_said_and_before_the_next_could_begin(
    running: ChatAddress | None, words: str
) -> None:
    chat = Chat(waiting(1, "one"), waiting(2, "two", THERE), running=waiting(9, "now", running) if running else None)
    reply = await chat.do("stop", words)
    everything = bool(words.strip())
    dropped = [("drop", 1), ("drop", 2)] if everything else []
    ended: list[object] = [("stop", KEY)] if running else [] if everything else [("drop", 1)]
    assert chat.did == [("held", everything), *dropped, *ended]
    assert chat.told == ([(THERE, STOPPED_THERE)] if everything else []), "who wrote elsewhere is told there"
    assert ("2 waiting messages were taken out" in reply.words) is everything
    assert ("Stopped." in reply.words) is (running == THERE), (
        "a turn that is shown here says itself that it was stopped"
    )
    left = len(chat.queue.waiting)
    assert (f"{left} message" in reply.words and "now." in reply.words) is bool(left)


@pytest.mark.parametrize(("root", "stops"), [("r1", True), ("r2", False)])
async def test_a_platforms_stop_button_means_what_is_shown_there(root: str, *, stops: bool) -> None:
    chat = Chat(waiting(1, "one"), running=Waiting(9, 9, wrote("now", root="r1"), 0))
    assert (await chat.do("stop", "here", root=root)).words == ""
    assert chat.did == ([("stop", KEY)] if stops else [])


async def test_who_is_cut_off_loses_what_was_asked_there_and_is_told_and_nobody_else_does() -> None:
    own, there = PlaceRow("telegram/1/2//", "telegram/1", "2", KEY.text(), 0), ChatAddress("telegram", "1", "8")
    for running, stops in ((HERE, True), (there, False)):
        chat = Chat(waiting(1, "mine"), waiting(2, "not mine", there), running=waiting(9, "now", running))
        await cut_off(chat.stopping, chat.outbox, [own])
        assert chat.did == ([("stop", KEY)] if stops else []) + [("drop", 1)]
        assert chat.told == [(HERE, CUT_OFF)]


# ---------------------------------------------------------------------- beginning anew, again, otherwise


async def test_a_new_conversation_has_begun_before_its_words_are_taken() -> None:
    chat = Chat(running=waiting(9, "now"))
    reply = await chat.do("new")
    assert (chat.did, reply.change.forget) == ([("stop", KEY), "forgets"], True)
    chat = Chat(running=waiting(9, "now"))
    reply = await chat.do("new", "hello there")
    began = SessionChange(forget=True)
    assert chat.did == [("stop", KEY), "forgets", began, ("submit", "new:/new", "hello there", None)]
    assert reply.words == ""
    assert (await Chat().do("new", own=SessionKey("discord", "1", "9"))).words == "left"


@pytest.mark.parametrize("name", ["retry", "undo"])
async def test_what_was_said_last_is_the_latest_turn_that_was_not_taken_back_since_the_conversation_began(
    name: str,
) -> None:
    for undone, since, last in (
        ((0, 0, 0), 0, "t_3"),
        ((0, 0, 1), 0, "t_2"),
        ((0, 0, 1), 2, ""),
        ((1, 1, 1), 0, ""),
        ((), 0, ""),
    ):
        chat = Chat().with_turns(*undone)
        chat.since = since
        reply = await chat.do(name)
        if not last:
            assert (chat.did, reply.change) == ([], SessionChange())
            assert reply.words.startswith("There is nothing to")
        elif name == "undo":
            assert reply.change == SessionChange(undo=last)
        else:
            took_back = OwnersChange("s1", 3, SessionChange(undo=last))
            assert chat.did == [
                ("asks", "retry:/retry:0", f"{last} first", took_back),
                ("asks", "retry:/retry:1", f"{last} second", None),
            ], "all of its messages, and what is taken back with the first"


@pytest.mark.parametrize("name", ["retry", "undo"])
async def test_nothing_is_taken_back_under_an_answer_that_is_on_its_way(name: str) -> None:
    chat = Chat(running=waiting(9, "now")).with_turns(0)
    reply = await chat.do(name)
    assert (chat.did, reply.change) == ([], SessionChange())
    assert "on its way" in reply.words


async def test_other_words_come_under_an_answer_to_somebody_who_pressed_a_button_and_typed_no_command() -> None:
    chat = Chat(running=waiting(9, "now")).with_turns(0)
    reply = await chat.do("redo", "t_0 in other words")
    assert (chat.did, reply.words) == ([], "An answer is on its way. Stop it first, or wait for its end.")


async def test_a_message_of_this_conversation_goes_another_way_once() -> None:
    chat = Chat().with_turns(0, 0, 0)
    await chat.do("redo", "t_2 in other words")
    (asked,) = cast("list[Any]", chat.did)
    assert asked[:3] == ("asks", "redo:/redo:0", "in other words")
    assert isinstance(asked[3], OwnersChange)
    assert asked[3].change.branch is not None
    chat.did.clear()
    await chat.do("redo", "t_2", inbox_id=3)
    assert cast("list[Any]", chat.did)[0][3] is None, "it was carried out before a death: what follows from it stays"
    chat.turns[1].session = "s2"
    chat.did.clear()
    assert "not have your message" in (await chat.do("redo", "t_2")).words
    assert chat.did == [], "another conversation's"


def test_other_words_keep_what_came_beside_them() -> None:
    picture: Json = {"type": "image_url", "image_url": {"url": "data:,"}}
    said = replace(wrote("old"), input=(InputMessage([{"type": "text", "text": "old"}, picture]),))
    assert in_other_words(said, "new").input[0].content == [{"type": "text", "text": "new"}, picture]


def test_what_is_asked_again_in_another_chat_is_shown_there_with_the_files_that_came_with_it() -> None:
    there = wrote("look", THERE)
    there = replace(there, chat=replace(there.chat, attachments=(Attachment(AttachmentKind.IMAGE, "ref", "a.png"),)))
    asked = asked_in(there, wrote("/retry").chat)
    assert isinstance(asked, FromChat)
    assert (asked.chat.address, asked.surface, asked.chat.message) == (HERE, "telegram", "/retry")
    assert asked.chat.attachments == there.chat.attachments
    assert asked.input == there.input
    here = wrote("look")
    assert asked_in(here, wrote("/retry").chat) is here


# ---------------------------------------------------------------------- what is set


@pytest.mark.parametrize(
    ("name", "words", "before", "after"),
    [
        ("model", "mini", Prefs(), Prefs(model="mini")),
        ("model", "gpt", Prefs(model="mini"), Prefs()),
        ("agent", "coder", Prefs(), Prefs(agent="coder")),
        ("agent", PLAIN, Prefs(agent="coder"), Prefs(agent=PLAIN)),
        ("queue", "always", Prefs(), Prefs(policy=SessionPolicy.QUEUE)),
        ("steer", "Always", Prefs(), Prefs(policy=SessionPolicy.STEER)),
        ("language", "Deutsch", Prefs(), Prefs(language="de")),
        ("language", "reset", Prefs(language="de"), Prefs()),
    ],
)
async def test_what_is_set_counts_at_once_and_is_stored(name: str, words: str, before: Prefs, after: Prefs) -> None:
    chat = Chat()
    chat.policy, chat.queue.prefs = before.encode(), before
    reply = await chat.do(name, words)
    assert reply.change == SessionChange(policy=after.since(before))
    assert chat.queue.prefs == after


@pytest.mark.parametrize(
    ("name", "words"), [("model", "gpt-9"), ("agent", "ops"), ("agent", "nobody"), ("language", "xx")]
)
async def test_nothing_is_set_that_is_not_there_for_them(name: str, words: str) -> None:
    reply = await Chat().do(name, words)
    assert reply.change == SessionChange()
    if name == "agent":
        assert "ops" not in reply.words.partition("There is:")[2], "an agent that is held to others is no choice"


@pytest.mark.parametrize(("running", "said"), [(None, False), (HERE, True), (THERE, False)])
async def test_it_is_said_that_words_are_heeded_where_the_answer_is_shown(
    running: ChatAddress | None, *, said: bool
) -> None:
    chat = Chat(running=waiting(9, "now", running) if running else None)
    reply = await chat.do("steer", "be brief")
    assert bool(reply.words) is said
    assert chat.did == [("submit", "steer:/steer", "be brief", SessionPolicy.STEER)]


# ---------------------------------------------------------------------- buttons

MARK = call_mark("c1")


@pytest.mark.parametrize(
    ("pressed", "did"),
    [
        (f"approve:t_9:{MARK}", None),
        (f"allow:t_9:{MARK}", ("approve", "t_9", "c1", Verdict.GIVEN, "telegram:2", Lasting.ONCE)),
        (f"deny:t_9:{MARK}", ("approve", "t_9", "c1", Verdict.DENIED, "telegram:2", Lasting.ONCE)),
        (f"allow:t_8:{MARK}", None),
        (f"answer:t_9:{call_mark('q1/k')}1", ("answer", "q1", "green", "telegram:2")),
        (f"answer:t_9:{call_mark('q1/k')}2", None),
        ("continue:t_9:", ("submit", "continue:t_9", "continue", None)),
    ],
)
async def test_a_button_does_what_stands_on_it_for_its_turn(pressed: str, did: tuple[object, ...] | None) -> None:
    chat = Chat(running=waiting(9, "now")).with_turns(*[0] * 9)
    await chat.do("press", pressed)
    if not pressed.startswith("approve:"):
        assert chat.did == ([did] if did else [])
    chat.did.clear()
    chat.shown = False
    reply = await chat.do("press", pressed)
    assert (chat.did, "another chat" in reply.words) == ([], True)


async def test_who_did_not_ask_decides_nothing_in_a_group() -> None:
    other = Waiting(9, 9, replace(wrote("now"), chat=replace(wrote("now").chat, person=ChatPerson("8", "Ben"))), 0)
    chat = Chat(running=other).with_turns(*[0] * 9)
    reply = await chat.do("press", f"allow:t_9:{MARK}", kind=ChatKind.GROUP)
    assert (chat.did, "Only" in reply.words) == ([], True)


async def test_what_was_taken_back_is_not_asked_again_by_its_button() -> None:
    chat = Chat().with_turns(0, 1)
    reply = await chat.do("press", "retry:t_2:")
    assert (chat.did, reply.words) == ([], "That was decided already.")
    await chat.do("press", "retry:t_1:")
    assert len(chat.did) == 2


@pytest.mark.parametrize("turn", ["t_1", "t_2", "t_3"])
async def test_a_retry_button_means_the_turn_beneath_whose_notice_it_stands_also_where_more_was_said_since(
    turn: str,
) -> None:
    chat = Chat().with_turns(0, 0, 0)
    await chat.do("press", f"retry:{turn}:")
    took_back = OwnersChange("s1", 3, SessionChange(undo=turn))
    assert chat.did == [
        ("asks", "retry:/press:0", f"{turn} first", took_back),
        ("asks", "retry:/press:1", f"{turn} second", None),
    ]


@pytest.mark.parametrize("pressed", ["retry:t_1:", "continue:t_1:"])
@pytest.mark.parametrize("own", ["s1", "s2"])
async def test_in_a_group_in_which_each_has_a_conversation_of_their_own_nobody_presses_for_others(
    own: str, pressed: str
) -> None:
    chat = Chat().with_turns(0)
    chat.turns[0].session = own
    by_person = replace(KEY, person="7")
    reply = await chat.do("press", pressed, own=by_person, kind=ChatKind.GROUP)
    assert (chat.did != [], "Only whoever asked" in reply.words) == ((True, False) if own == "s1" else (False, True))
    chat.did.clear()
    await chat.do("press", pressed, kind=ChatKind.GROUP)
    assert chat.did, "where all share one, the button may be older than it"


async def test_a_conversation_that_began_with_words_begins_anew_once() -> None:
    """Carried out once more after a death, it would stop the answer to these words, and forget it."""
    chat = Chat(running=waiting(9, "hello there"))
    chat.taken = {"new:/new"}
    reply = await chat.do("new", "hello there")
    assert (chat.did, reply) == ([("submit", "new:/new", "hello there", None)], CommandReply(""))
