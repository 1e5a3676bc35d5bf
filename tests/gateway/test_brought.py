"""What messages bring, counted by the day: each file once in the day of its person, and what is said where there is no room."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from adapters.contract.base import FromApi, FromChat, SessionKey
from adapters.contract.chat import Attachment, AttachmentKind, ChatAddress, ChatKind, ChatOrigin, ChatPerson
from agent_core.limits.quotas import Full, QuotaKind, QuotaLedger, QuotaLimits
from agent_core.messages import InputMessage
from agent_core.store.errors import NoRoomToday
from gateway.limits import incoming
from gateway.limits.incoming import DAY_MS, UNKNOWN_BYTES, Incoming, carried_bytes, without_files

MIB = 1024 * 1024
LIMITS = QuotaLimits({QuotaKind.INCOMING: 9 * MIB, QuotaKind.SESSIONS: 4}, 0)
NOW = 20_000 * DAY_MS + 13 * 3_600_000
files = st.builds(
    Attachment,
    st.sampled_from([AttachmentKind.FILE, AttachmentKind.VOICE, AttachmentKind.OTHER]),
    st.just("r"),
    st.sampled_from(["a.txt", "b.txt"]),
    size=st.sampled_from([0, 7, MIB]),
)


def chat(*attachments: Attachment, key: str = "m1", thread: str = "", person: str = "") -> FromChat:
    address = ChatAddress("telegram", "1", "2", thread)
    origin = ChatOrigin(address, ChatKind.PRIVATE, ChatPerson("5", "Ada"), attachments=attachments)
    session = SessionKey("telegram", "1", "2", thread, person)
    return FromChat(
        account="telegram/1", platform_key=key, session=session, input=(), surface="telegram",
        memory_scope=session.text(), chat=origin,
    )  # fmt: skip


def api(session: str = "s", *, stateless: bool = False) -> FromApi:
    return FromApi(
        account="api", platform_key="k", session=SessionKey("api", "ada", session), input=(InputMessage("hi"),), surface="api",
        memory_scope="api/ada", own_history=() if stateless else None,
    )  # fmt: skip


def counting(whole: int = 0) -> tuple[Incoming, list[tuple[str, Full]], QuotaLedger]:
    refused: list[tuple[str, Full]] = []
    limits = replace(LIMITS, whole=whole)
    ledger = QuotaLedger(limits)
    return Incoming(limits, ledger, lambda holder, full: refused.append((holder, full))), refused, ledger


@given(st.lists(files, max_size=4), st.sampled_from(["", "7"]))
async def test_each_file_counts_in_the_day_of_its_chat_by_its_size_or_as_one_whose_size_nobody_tells(
    attachments: list[Attachment], thread: str
) -> None:
    said = chat(*attachments, thread=thread)
    taken = [one for one in attachments if one.kind is not AttachmentKind.OTHER]
    charges = await counting()[0].admit(said, NOW)
    if not taken:
        assert charges == ()
        return
    (charge,) = charges
    assert (charge.window, charge.until, charge.limit) == (20_000 * DAY_MS, 20_001 * DAY_MS, 9 * MIB)
    assert charge.scope == "daily:incoming:telegram/1/2", "threads are no way around it"
    sizes = sorted(one.size or UNKNOWN_BYTES for one in taken)
    assert sorted(file.size for file in charge.files) == sizes
    assert len({file.scope for file in charge.files}) == len(taken), "two that look alike are two"
    again = await counting()[0].admit(said, NOW)
    assert again[0].files == charge.files, "what is brought again is known"


async def test_more_files_than_are_known_count_each_time() -> None:
    some = [Attachment(AttachmentKind.FILE, "r", f"{n}.txt", size=n) for n in range(1, incoming.KNOWN_FILES + 4)]
    (charge,) = await counting()[0].admit(chat(*some), NOW)
    assert (len(charge.files), charge.amount) == (incoming.KNOWN_FILES, 1 + 2 + 3), "the smallest are not known"


async def test_a_conversation_of_the_api_counts_once_and_one_without_a_name_never() -> None:
    counts, _, _ = counting()
    (charge,) = await counts.admit(api(), NOW)
    assert (charge.scope, charge.amount, charge.limit, charge.new_session) == ("daily:sessions:api/ada", 1, 4, True)
    counts.taken(api())
    assert await counts.admit(api(), NOW) == ()
    assert len(await counts.admit(api("other"), NOW)) == 1
    assert await counts.admit(api(stateless=True), NOW) == await counts.admit(chat(), NOW) == ()


async def test_where_the_whole_is_full_files_are_compared_with_it_and_count_for_the_day() -> None:
    counts, _, ledger = counting(whole=MIB)
    for _ in ledger.end_count(MIB, {}):
        pass
    whole, day = await counts.admit(chat(Attachment(AttachmentKind.FILE, "r", "a", size=9)), NOW)
    assert (whole.scope, whole.limit, whole.already, whole.counts) == ("daily:whole:telegram/1/2", MIB, MIB, False)
    assert (day.scope, day.counts, day.files) == ("daily:incoming:telegram/1/2", True, whole.files)


def test_who_is_refused_may_come_again_tomorrow_or_when_somebody_has_made_room() -> None:
    counts, refused, _ = counting()
    for kind, seconds in ((QuotaKind.INCOMING, 11 * 3600), (QuotaKind.WHOLE, 600)):
        error = NoRoomToday(f"daily:{kind.value}:telegram/1/2", 8, 9, 2)
        for _ in range(2):  # once more in its person's language
            assert counts.refusal(chat(key=kind.value), error, NOW).retry_after_seconds == seconds
        assert refused[-1] == ("telegram/1/2", Full(kind, 8, 9, 2))
    assert len(refused) == 2, "one message is refused once"


@given(st.lists(files, max_size=4), st.lists(files, max_size=3))
def test_of_an_edit_that_has_no_room_only_what_it_adds_is_refused(
    before: list[Attachment], added: list[Attachment]
) -> None:
    after = without_files(chat(*before, *added), "full", before)
    kept, new = after.chat.attachments[: len(before)], after.chat.attachments[len(before) :]
    assert [*kept] == before
    assert [one.refused for one in new] == ["" if one.kind is AttachmentKind.OTHER else "full" for one in added]
    assert carried_bytes(without_files(after, "full")) == 0
