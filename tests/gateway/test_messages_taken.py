"""What becomes of a message of a chat on its way to its queue: taken, held, refused, changed or withdrawn, each once, and its position stored with it."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from adapters.contract.base import FromChat, SessionKey, Ticket
from adapters.contract.chat import Attachment, AttachmentKind, ChatAddress, ChatKind, ChatOrigin, ChatPerson
from adapters.contract.notaccepted import NotAccepted, NotAcceptedCode
from agent_core.messages import InputMessage
from agent_core.store.inbox.rows import InboxRow, InboxState
from agent_core.store.people.rows import PersonRow, PersonState
from agent_core.store.store import Conflict
from agent_core.text.tongue import speaking
from gateway.commands.messages import Messages
from gateway.commands.registry import queued_words
from gateway.people.members import MemberRefused
from gateway.queues import inbox
from gateway.queues.held import HOLD, HeldMessage
from gateway.queues.inbox import BY_PERSON, COMMAND_LANE, NORMAL_LANE, REFUSED_LANE
from tests.agent_core.turns import gives
from tests.store.support import FakeClock

KEY = SessionKey("telegram", "1", "2")
FILE = Attachment(AttachmentKind.FILE, "r", "a.txt", size=9)
CURSOR = ("updates", "77")
SAID = FromChat(
    account="telegram/1", platform_key="m1", session=KEY, input=(InputMessage("hello"),), surface="telegram", memory_scope="telegram/1/2//",
    chat=ChatOrigin(ChatAddress("telegram", "1", "2"), ChatKind.PRIVATE, ChatPerson("2", "Ann"), "m1"),
)  # fmt: skip
WITH_FILE = replace(SAID, chat=replace(SAID.chat, attachments=(FILE,)))
HELD = HeldMessage.for_room("hello").command()
AS_HELD = replace(SAID, input=(InputMessage(f"/{HELD.name} {HELD.words}"),))


def row(
    lane: str = NORMAL_LANE, state: InboxState = InboxState.NEW, body: FromChat = SAID, number: int = 7
) -> InboxRow:
    return InboxRow(
        id=number, account="telegram/1", platform_key="m1", session="s1", arrival=number, lane=lane, body=inbox.encode(body),
        state=state, reason=None, received_at=1,
    )  # fmt: skip


class Door:
    """Notes what is stored and said. `refusals` come before anything is taken."""

    def __init__(self, *refusals: NotAccepted, duplicate: bool = False) -> None:
        self.refusals, self.duplicate = [*refusals], duplicate
        self.did: list[tuple[Any, ...]] = []
        self.rows: dict[str, InboxRow] = {}
        self.reworded: list[str] = []
        self.rewords = True
        self.gone = False
        queue: Any = SimpleNamespace(
            reword=self.hears,
            epoch=3,
            position=gives(None),
            running=None,
            waiting=[],
        )
        self.queues: Any = SimpleNamespace(known=gives(queue), release=gives(None))
        portion = SimpleNamespace(mine=gives(True), far=None)
        accepting = SimpleNamespace(
            accept=self.accept, queues=self.queues, runner=SimpleNamespace(slots=None), crowded=gives(None), portion=portion,
            new_message=self.new, put=self.put, owned_stored=self.owned,
        )  # fmt: skip
        store = SimpleNamespace(
            inbox=SimpleNamespace(by_key=self.by_key, move_cursor=self.moved, reword=self.reword, drop=self.drop)
        )
        stopping = SimpleNamespace(stop_message=self.stop_message, withdraw=self.withdraw)
        outbox = SimpleNamespace(words=SimpleNamespace(say=self.say))
        self.messages = Messages(
            cast("Any", accepting), cast("Any", stopping), cast("Any", SimpleNamespace(noted=self.noted, rules_of=gives(None))),
            cast("Any", outbox), None, cast("Any", store), FakeClock(), cast("Any", SimpleNamespace(as_known=self.language)),
        )  # fmt: skip
        self.messages.open(cast("Any", SimpleNamespace(take=self.held)))

    async def language(self, *_: object) -> str:
        return "de"

    def hears(self, said: FromChat) -> None:
        self.reworded.append(str(said.input[0].content))

    async def accept(self, inbound: FromChat, *, cursor: object, busy: object, only_new: bool = False) -> Ticket:
        if self.refusals:
            raise self.refusals.pop(0)
        refused = [one.refused for one in inbound.chat.attachments]
        self.did.append(("queued", inbound.platform_key, refused, cursor, busy))
        return Ticket(7, "s1", self.duplicate)

    async def held(self, _inbound: object, command: Any, cursor: object) -> tuple[Any, None]:
        self.did.append(("held", command.words, cursor))
        return SimpleNamespace(duplicate=self.duplicate, inbox_id=7, session="s1"), None

    def new(self, _inbound: object, lane: str, _now: int, cursor: object, *, refused: str = "") -> tuple[Any, ...]:
        return ("stored", lane, cursor, refused)

    async def put(self, message: tuple[Any, ...]) -> Any:
        self.did.append(message)
        return SimpleNamespace(duplicate=self.duplicate, inbox_id=7, session="s1")

    async def owned(self, *_: object) -> Any:
        return self.queues.known()

    async def say(self, _address: object, _owner: object, origin: str, content: Any) -> None:
        self.did.append(("said", origin, content.body.text[:12]))

    async def noted(self, _origin: object, one: MemberRefused) -> str:
        if one.person is not None:
            self.did.append(("noted", one.person.person))
        return one.words

    async def moved(self, *where: str) -> None:
        self.did.append(("moved", *where))

    async def by_key(self, _: str, key: str) -> InboxRow | None:
        return self.rows.get(key)

    async def reword(self, _: str, key: str, *_body: object) -> bool:
        self.did.append(("reworded", key))
        return self.rewords or key.startswith(HOLD)

    async def drop(self, number: int, why: str) -> None:
        if self.gone:
            raise Conflict("done")
        self.did.append(("dropped", number, why))

    async def stop_message(self, ticket: Ticket) -> None:
        self.did.append(("stopped", ticket.inbox_id))

    async def withdraw(self, ticket: Ticket) -> bool:
        self.did.append(("withdrawn", ticket.inbox_id))
        return True


def refused(code: NotAcceptedCode, words: str = "No room.") -> NotAccepted:
    return NotAccepted(words, code)


TAKEN: list[tuple[tuple[NotAccepted, ...], FromChat, list[tuple[Any, ...]]]] = [
    ((), SAID, [("queued", "m1", [], CURSOR, None)]),
    ((refused(NotAcceptedCode.QUEUE_FULL),), SAID, [("held", "0 hello", CURSOR), ("said", "held:7", "")]),
    ((refused(NotAcceptedCode.QUOTA),), WITH_FILE, [("queued", "m1", ["No room."], CURSOR, None)]),
    (
        (refused(NotAcceptedCode.QUOTA),) * 2,
        WITH_FILE,
        [("stored", REFUSED_LANE, CURSOR, "quota"), ("said", "inbox:7", "No room.")],
    ),
    (
        (refused(NotAcceptedCode.QUOTA),),
        SAID,
        [("stored", REFUSED_LANE, CURSOR, "quota"), ("said", "inbox:7", "No room.")],
    ),
]


@pytest.mark.parametrize(("refusals", "said", "did"), TAKEN)
async def test_a_message_is_taken_held_or_refused_in_words_and_files_without_room_leave_the_words(
    refusals: tuple[NotAccepted, ...], said: FromChat, did: list[tuple[Any, ...]]
) -> None:
    door = Door(*refusals)
    assert await door.messages.take(said, "hello", CURSOR)
    assert [one[:2] if one[0] == "said" else one for one in door.did] == [
        one[:2] if one[0] == "said" else one for one in did
    ]


@pytest.mark.parametrize("way", ["submit", "submit_or_hold"])
async def test_words_that_were_held_or_stand_behind_a_command_are_answered_though_there_is_no_room_for_their_files(
    way: str,
) -> None:
    door = Door(refused(NotAcceptedCode.QUOTA))
    assert await getattr(door.messages, way)(WITH_FILE, "hold:m1", "hello", None)
    assert door.did == [("queued", "hold:m1", ["No room."], None, None)]
    door = Door(*[refused(NotAcceptedCode.QUOTA)] * 2)
    with pytest.raises(NotAccepted):
        await getattr(door.messages, way)(WITH_FILE, "hold:m1", "hello", None)


@pytest.mark.parametrize("code", [NotAcceptedCode.QUEUE_FULL, NotAcceptedCode.GATEWAY_FULL, NotAcceptedCode.QUOTA])
async def test_before_words_are_said_of_a_new_message_it_is_looked_up_with_their_language(
    code: NotAcceptedCode,
) -> None:
    door = Door(refused(code))
    assert not await door.messages.take(SAID, "hello", CURSOR, only_new=True)
    assert door.did == []


async def test_the_place_in_the_queue_is_told_in_the_language_of_its_person_whoever_tells_it() -> None:
    door = Door()
    queue = door.queues.known()
    queue.position, queue.running = gives(2), object()
    await door.messages.announce(SAID, 7, "s1")
    with speaking("de"):
        words = queued_words(2)
    assert door.did == [("said", "queue:7", words[:12])]
    assert words[:12] != queued_words(2)[:12]


@pytest.mark.parametrize(
    "code", [NotAcceptedCode.STORAGE_AWAY, NotAcceptedCode.SHUTTING_DOWN, NotAcceptedCode.OTHER_CONTENT]
)
async def test_what_passes_is_left_to_whoever_brought_it(code: NotAcceptedCode) -> None:
    door = Door(refused(code))
    with pytest.raises(NotAccepted):
        await door.messages.take(SAID, "hello", CURSOR)
    assert door.did == []


async def test_a_message_goes_behind_those_that_wait_for_room_unless_it_is_known() -> None:
    door = Door()
    with door.messages.held.holding(KEY.text(), 5), door.messages.held.lining_up(KEY.text(), 5):
        await door.messages.take(SAID, "hello", None)
        assert [one[0] for one in door.did] == ["held", "said"]
        door.did.clear()
        door.rows["m1"] = row()
        await door.messages.take(SAID, "hello", None)
        assert [one[0] for one in door.did] == ["queued"]


@pytest.mark.parametrize("cursor", [CURSOR, None])
async def test_what_was_known_is_not_told_again_and_the_platform_is_read_on(cursor: tuple[str, str] | None) -> None:
    moved = [("moved", "telegram/1", *CURSOR)] if cursor else []
    door = Door(duplicate=True)
    await door.messages.take(SAID, "hello", cursor)
    assert door.did == [("queued", "m1", [], cursor, None), *moved]
    door = Door(duplicate=True)
    stranger = PersonRow("telegram/1", "2", PersonState.PENDING)
    await door.messages.refuse(SAID, cursor, MemberRefused("not allowed to talk", "Hello.", stranger))
    assert door.did == [("stored", REFUSED_LANE, cursor, "not allowed to talk"), *moved]
    door = Door()
    await door.messages.refuse(SAID, cursor, MemberRefused("not allowed to talk", "Hello.", stranger))
    assert door.did[1:] == [("noted", "2"), ("said", "inbox:7", "Hello.")]
    door = Door()
    await door.messages.refuse(SAID, cursor, MemberRefused("too many messages", ""))
    assert len(door.did) == 1


@pytest.mark.parametrize("taken", [True, False])
async def test_whoever_has_a_message_in_a_queue_hears_of_its_new_words_if_they_are_stored(*, taken: bool) -> None:
    door = Door()
    door.rewords = taken
    await door.messages.edit(replace(SAID, input=(InputMessage("hello!"),)), row())
    assert (door.did, door.reworded) == ([("reworded", "m1")], ["hello!"] if taken else [])


@pytest.mark.parametrize("taken", [True, False])
async def test_an_edit_of_what_is_held_counts_also_when_it_was_taken_in_meanwhile(*, taken: bool) -> None:
    door = Door()
    door.rewords = taken
    door.rows[f"{HOLD}:m1"] = row(number=8)
    await door.messages.edit(replace(SAID, input=(InputMessage("hello!"),)), row(COMMAND_LANE, body=AS_HELD))
    assert door.did == [("reworded", "m1")] + ([] if taken else [("reworded", f"{HOLD}:m1")])
    door.did.clear()
    await door.messages.edit(SAID, row(COMMAND_LANE, body=replace(SAID, input=(InputMessage("/new"),))))
    assert door.did == [], "a command stays what it was"


@pytest.mark.parametrize("state", InboxState)
async def test_what_is_not_over_is_stopped_and_what_waits_is_withdrawn(state: InboxState) -> None:
    door = Door()
    door.rows["m1"] = row(state=state)
    await door.messages.stop("telegram/1", "m1")
    assert door.did == ([("stopped", 7)] if state in (InboxState.NEW, InboxState.TAKEN) else [])
    door.did.clear()
    await door.messages.remove("telegram/1", "m1")
    assert door.did == ([("withdrawn", 7)] if state is InboxState.NEW else [])


@pytest.mark.parametrize("gone", [True, False])
async def test_what_is_held_and_was_deleted_is_dropped_or_taken_out_of_its_queue(*, gone: bool) -> None:
    door = Door()
    door.gone = gone
    door.rows = {"m1": row(COMMAND_LANE, body=AS_HELD), f"{HOLD}:m1": row(number=8)}
    await door.messages.remove("telegram/1", "m1")
    assert door.did == ([("withdrawn", 8)] if gone else [("dropped", 7, BY_PERSON)])
