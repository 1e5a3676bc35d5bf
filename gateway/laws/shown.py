"""The laws of what chats show: all that a turn ended with is there, as it was wanted, once, in order, with its receipt. Pure.

Theory. What a chat should show follows from the turn's journal (`view`, `picture`), and what it does show is recorded in its parts. So the
journal is folded once more, and compared. Compared are words: letters and digits in their order, bubble by bubble, however they were cut
and styled. What was refused in its form and went in another one (`instead:`) is not compared; it says itself that it is something else.

Known to be weak: of turns that an earlier version of this program wrote, its own sentences are not compared, only the model's.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise

from adapters.contract.base import FromChat
from adapters.contract.chat import Content, ContentKind, Piece, Traits
from adapters.contract.contents import decode
from adapters.delivery.parts import WantedPart, picture
from adapters.delivery.reconcile import is_print_of
from adapters.platforms import platform_of
from adapters.text.styled import Styled
from agent_core.failures.exits import InterruptedByRestart
from agent_core.failures.notices import RESTORED
from agent_core.messages import InputMessage, words_of
from agent_core.store.deliveries.rows import INSTEAD, DeliveryRow, DeliveryState, behind, made_for, made_here
from agent_core.store.evidence import MOMENT_MS, KeptPart, TurnEvidence
from agent_core.store.turns.rows import FORGOTTEN, TurnState
from agent_core.turn.view import TEXTS, BubbleKind, View, view
from gateway.laws.law import KEPT_MS, Breach, Law, Viewpoint
from gateway.laws.turns import breach, folded
from gateway.queues.inbox import UnreadableMessage
from gateway.queues.inbox import decode as decode_message

OPEN = (DeliveryState.WANTED, DeliveryState.SENDING, DeliveryState.UNKNOWN)
GROWS = "grows:"
ANSWERS = "inbox"
"""How the origin of an answer to a message begins that is no turn's; its number follows."""
_WORD = re.compile(r"[^\W_]+")
_TOP = re.compile(r"(?:>\d+)+\Z")
_WORDS = (ContentKind.TEXT, ContentKind.NOTICE)
_MUST_STAND: Mapping[BubbleKind | None, str] = {
    BubbleKind.FILE: "has sent a file",
    BubbleKind.DECIDED: "has asked somebody, who has decided",
}
_COMPARED = (*TEXTS, BubbleKind.NOTICE, BubbleKind.NOTE)


def of_part(part: KeptPart, chat: str = "", emptied: Collection[str] = ()) -> Iterator[Breach]:
    """The laws that one part breaks, whatever it belongs to. In `emptied` chats nothing is recorded any more."""
    row, where = part.row, part.row.key
    if not is_print_of(row.want_hash, row.want):
        yield Breach(
            Law.CHANGED,
            f"The content of part {where} is not the one that was stored with its fingerprint.",
            where,
            chat,
            row.at,
        )
    receipt = row.platform_id or ""
    if row.state is DeliveryState.SENT and not row.gone and row.final and (not receipt or receipt.startswith(GROWS)):
        words = "has no receipt" if not receipt else "has the receipt of one that was not finished"
        yield Breach(Law.NO_RECEIPT, f"Part {where} is recorded as delivered, and {words}.", where, chat, row.at)
    if row.state is DeliveryState.SENT and row.gone:
        yield Breach(Law.TWICE, f"Part {where} should be gone, and is recorded as delivered.", where, chat, row.at)
    # A platform may give a chat another id: all that was shown there moves at once, and so does its conversation, unless there is one already
    # where it goes. What was put elsewhere alone has left others behind.
    moved = not row.key.startswith(f"{row.surface}/") and made_for(row) not in emptied
    if chat and moved and not chat.startswith(row.surface.rstrip("/")):
        words = f"Part {where} is recorded in another chat than the one that it was made for."
        yield Breach(Law.OTHER_CHAT, words, where, chat, row.at)
    tail = row.key.rpartition(f"/{row.origin}/")[2] if f"/{row.origin}/" in row.key else ""
    if "/" in tail and _one_path(tail) != _one_path(f"{row.bubble}/{row.part}"):
        words = f"Part {where} says that it is part {row.part + 1} of {row.bubble}, which it was not when it was made."
        yield Breach(Law.MISPLACED, words, where, chat, row.at)
    if row.state is DeliveryState.FAILED and not row.cause:
        yield Breach(Law.GIVEN_UP, f"Part {where} has failed, and nobody wrote down why.", where, chat, row.at)
    if row.state is DeliveryState.SKIPPED and not row.gone and not row.cause:
        yield Breach(Law.GIVEN_UP, f"Part {where} was left out, and nobody wrote down why.", where, chat, row.at)


def _one_path(name: str) -> str:
    """A part's name as its key has it: what came in its place stands below it, and what is sent anew has a mark more."""
    return name.replace(">", "/").replace("'", "")


def waits(part: KeptPart, since: int, moment: Viewpoint, chat: str = "") -> Iterator[Breach]:
    """The law of what is still to be delivered."""
    row = part.row
    if row.state in OPEN and since > moment.ahead and not row.gone:
        words = f"Part {row.key} is to be delivered, and says that it is wanted from a time on that is still to come."
        yield Breach(Law.UNDELIVERED, words, row.key, chat, 0)
    if row.state in OPEN and moment.now - max(since, 0) > moment.late and not row.gone:
        why = f": {row.cause}" if row.cause else ""
        words = f"Part {row.key} is to be delivered for {(moment.now - since) // 60_000} min{why}.{moment.idle}"
        yield Breach(Law.UNDELIVERED, words, row.key, chat, since)


def doubled(parts: Sequence[KeptPart], others: Sequence[KeptPart]) -> Iterator[Breach]:
    """No two parts of one chat have one message; nor of one account, where ids are numbers that say when a message was written."""
    seen: dict[tuple[str, str], KeptPart] = {}
    for one in sorted({one.id: one for one in (*parts, *others)}.values(), key=lambda one: one.id):
        row = one.row
        if row.platform_id is None or row.gone or row.state is not DeliveryState.SENT:
            continue
        name, account, *_ = row.surface.split("/", 2)
        platform = platform_of(name)
        moment = platform.written_at(row.platform_id) if platform is not None and row.platform_id.isdecimal() else None
        # What was shown before the chat got another id stays where it was, and the same number means another message there.
        where = row.surface if made_here(row) else made_for(row)
        first = seen.setdefault((where if moment is None else f"{name}/{account}", row.platform_id), one)
        if first is not one:
            words = f"Parts {first.row.key} and {row.key} have the same receipt ({row.platform_id})."
            yield Breach(Law.TWICE, words, row.key, "", row.at)


def orphan(part: KeptPart) -> Iterator[Breach]:
    """The law of a part whose turn is not there."""
    words = f"Part {part.row.key} was shown for turn {part.row.origin}, which is not there."
    yield Breach(Law.LOST, words, part.row.key, "", part.row.at)


def answers_message(part: KeptPart) -> int | None:
    """The number of the message that it answers beside any turn, such as a command; None if it answers none."""
    kind, _, number = behind(part.row.origin).partition(":")
    return int(number) if kind == ANSWERS and number.isdecimal() else None


def unasked(part: KeptPart, number: int, moment: Viewpoint) -> Iterator[Breach]:
    """The law of a part whose message is not there, though neither is old enough to be removed."""
    if moment.now - part.row.at <= KEPT_MS:
        words = f"Part {part.row.key} answers message {number}, which is not there."
        yield Breach(Law.LOST, words, part.row.key, "", part.row.at)


def of_shown(seen: TurnEvidence, moment: Viewpoint) -> list[Breach]:
    """The laws that a closed turn breaks by what its chat shows."""
    turn, chat = seen.turn, seen.session.key if seen.session is not None else ""
    found = [one for part in seen.parts for one in of_part(part, chat, seen.emptied)]
    found += _one_key_each(seen)
    found += [*_its_own(seen), *_question(seen, moment), *_receipts(seen), *_sent_when(seen)]
    if turn.state is not TurnState.CLOSED or turn.closed_at is None:
        return found
    found += [one for part in seen.parts for one in waits(part, turn.closed_at, moment, chat)]
    if turn.removed == FORGOTTEN or moment.now - turn.closed_at > KEPT_MS:
        return found
    unfinished = [
        one for one in seen.parts if not one.row.final and not one.row.gone and one.row.state is DeliveryState.SENT
    ]
    if unfinished and moment.now - turn.closed_at > moment.late:
        words = f"Part {unfinished[0].row.key} is recorded as delivered on its way, and its turn has ended."
        found.append(breach(seen, Law.UNDELIVERED, words))
    return [*found, *_compared(seen, moment)]


def _one_key_each(seen: TurnEvidence) -> Iterator[Breach]:
    """By its key a platform knows a part again: of two with one key it shows one."""
    for key, count in Counter(one.row.key for one in seen.parts).items():
        if count > 1:
            yield breach(seen, Law.TWICE, f"{count} parts of turn {seen.turn.turn} have the same key, {key}.")


def _its_own(seen: TurnEvidence) -> Iterator[Breach]:
    """Parts of a turn are its conversation's, and have keys that are no other turn's. One that was set aside is told of in another."""
    turn, aside = seen.turn, seen.session is None or seen.session.quarantined is not None
    for one in seen.parts:
        if one.session != turn.session and not aside:
            words = f"Part {one.row.key} of turn {turn.turn} is recorded for another conversation."
            yield breach(seen, Law.EPOCH, words)
        if f"/{turn.turn}/" not in one.row.key:
            words = f"A part of turn {turn.turn} has a key that is another's: {one.row.key}."
            yield breach(seen, Law.TWICE, words)


def _receipts(seen: TurnEvidence) -> Iterator[Breach]:
    """A platform counts on, or says when: whatever was sent later, behind the rest, has the later receipt; and none is older than the question."""
    sent = [
        one for one in (*seen.parts_before, *seen.parts) if one.row.state is DeliveryState.SENT and not one.row.gone
    ]
    by_chat: dict[str, list[tuple[DeliveryRow, int]]] = {}
    for one in sorted(sent, key=lambda one: one.row.place):
        if (number := _counted(one.row)) is not None and made_here(one.row):
            by_chat.setdefault(one.row.surface, []).append((one.row, number))
    for (row, number), (other, behind_it) in (pair for rows in by_chat.values() for pair in pairwise(rows)):
        in_order = None not in (row.sending_at, other.sending_at) and (row.sending_at or 0) < (other.sending_at or 0)
        if in_order and number > behind_it and row.place < other.place:
            words = f"Part {other.key} was sent behind part {row.key}, and has an earlier receipt: one of the two is another message's."
            yield breach(seen, Law.NO_RECEIPT, words, other.at)
    asked = asked_by_chat(seen)
    question = _counted_as(asked.chat.address.platform, asked.chat.message) if asked is not None else None
    if asked is None or question is None:
        return
    for row, number in by_chat.get(asked.chat.address.text(), ()):
        if row.origin == seen.turn.turn and number <= question:
            words = f"Part {row.key} has a receipt that is no later than the message that it answers."
            yield breach(seen, Law.NO_RECEIPT, words, row.at)


def _counted(row: DeliveryRow) -> int | None:
    return _counted_as(row.surface.partition("/")[0], row.platform_id or "")


def _counted_as(platform: str, message: str) -> int | None:
    """Where a message of a chat stands among its others, by its id; None if that does not say."""
    known = platform_of(platform)
    if known is None:
        return None
    at = known.written_at(message)
    return at if at is not None else int(message) if known.counts_messages and message.isdecimal() else None


def _sent_when(seen: TurnEvidence) -> Iterator[Breach]:
    """What was sent for a turn was sent when that had begun. When a clock is set, all that is stored of a part says so, but where two processes had the turn,
    each with its own."""
    if len({one.epoch for one in seen.journal}) > 1:
        return
    begun = seen.turn.opened_at
    for one in seen.parts:
        times = [at for at in (one.row.sending_at, one.row.at) if at]
        if times and min(times) < begun - MOMENT_MS and max(times) >= begun:
            words = f"Part {one.row.key} says that it was sent before turn {seen.turn.turn} had begun."
            yield breach(seen, Law.MISPLACED, words, one.row.at)


def _question(seen: TurnEvidence, moment: Viewpoint) -> Iterator[Breach]:
    """What was said in a chat is what the turn was asked. Files and voices bring more words with them, and none of those that were said goes."""
    told = folded(seen) if moment.now - seen.turn.opened_at <= KEPT_MS else None
    if told is None or told.opened is None:
        return
    asked = _as_line(told.opened.input)
    for message in (one for one in seen.messages if one.turn == seen.turn.turn):
        try:
            inbound = decode_message(message.body)
        except UnreadableMessage:
            continue  # told as such, or too long to be looked at here
        if isinstance(inbound, FromChat) and _as_line(inbound.input) not in asked:
            words = f"Message {message.id} says something else than what turn {seen.turn.turn} was asked."
            yield breach(seen, Law.OTHER_WORDS, words)


def _as_line(messages: Sequence[InputMessage]) -> str:
    """What people say in them, word by word."""
    said = [words_of(one.content) for one in messages if one.role == "user"]
    return "".join(f" {word}" for text in said for word in _WORD.findall(text))


def asked_by_chat(seen: TurnEvidence) -> FromChat | None:
    """The message that the turn answers, if it came from a chat and can be read."""
    first = next((one for one in seen.messages if one.id == seen.turn.first_message), None)
    try:
        inbound = decode_message(first.body) if first is not None else None
    except UnreadableMessage:
        return None
    return inbound if isinstance(inbound, FromChat) else None


def _elsewhere(seen: TurnEvidence, asked: FromChat) -> Iterator[Breach]:
    """What a turn says stands in the chat that asked, and is told in the conversation that goes on there. Of a chat that has another id by now its
    conversation is not called so any more, and nothing stands where it was."""
    chat = asked.chat.address.text()
    if seen.session is None or not seen.session.key.startswith(chat.rstrip("/")):
        stays = any(one.row.surface == chat and one.row.key.startswith(f"{chat}/") for one in seen.parts)
        if (
            stays
            and seen.session is not None
            and seen.session.quarantined is None
            and asked.session.text() != seen.session.key
        ):
            words = f"Turn {seen.turn.turn} was asked in another conversation than the one that has it."
            yield breach(seen, Law.OTHER_CHAT, words)
        return
    for one in seen.parts:
        row = one.row
        if row.surface != chat and row.key.startswith(f"{row.surface}/"):  # else it says so itself
            words = f"Part {row.key} of turn {seen.turn.turn} stands in another chat than the one that asked."
            yield Breach(Law.OTHER_CHAT, words, row.key, seen.session.key, row.at)


def _compared(seen: TurnEvidence, moment: Viewpoint) -> Iterator[Breach]:
    """What the journal comes to, against the parts."""
    turn, told, asked = seen.turn, folded(seen), asked_by_chat(seen)
    if asked is not None:
        yield from _elsewhere(seen, asked)
    if told is None or told.exit is None or turn.undone or asked is None:
        return
    if isinstance(told.exit, InterruptedByRestart) and told.exit.detail == RESTORED:
        return  # nobody is told again of what was open in a backup
    # A chat is shown in another conversation what became of one that was set aside.
    if seen.session is None or seen.session.quarantined is not None:
        return
    shown = view(told, turn.closed_at or 0)
    ours = (turn.closed_at or 0) >= moment.ours_since
    wanted = _wanted(seen, shown)
    there = _by_bubble(seen.parts, wanted)
    kinds = {bubble.key: bubble.kind for bubble in shown.bubbles}
    last = _last(shown)
    compared = {bubble for bubble in wanted if kinds.get(bubble) in _COMPARED}
    for bubble in compared:
        kind, mine = kinds[bubble], [one for one in there.get(bubble, ()) if _stands(one)]
        if any(map(_taken_away, there.get(bubble, ()))):
            continue
        if not mine:
            law = Law.UNSEEN if bubble == last else Law.GAP
            what = "its notice" if kind is BubbleKind.NOTICE else "its answer" if bubble == last else f"{bubble} of it"
            words = f"Turn {turn.turn} ended with {turn.exit}, and {what} is not among the parts of its chat."
            yield breach(seen, law, words)
        elif ours or kind in TEXTS:
            yield from _same_words(seen, bubble, wanted[bubble], mine)
    for bubble in wanted:
        if (what := _MUST_STAND.get(kinds.get(bubble))) is not None and bubble not in there:
            words = f"Turn {turn.turn} {what}, and {bubble} is not among the parts of its chat."
            yield breach(seen, Law.GAP, words)
    for bubble, mine in there.items():
        extra = [one for one in mine if _stands(one) and decode(one.row.want).kind in _WORDS]
        if bubble not in wanted and extra:
            words = f"Part {extra[0].row.key} stands in the chat of turn {turn.turn}, which did not want it."
            yield breach(seen, Law.TWICE, words, extra[0].row.at)
    yield from _in_order(seen, [one for one in wanted if one in compared], there)
    yield from _behind_the_turn_before(seen, [one for bubble in compared for one in there.get(bubble, ())])


def _last(shown: View) -> str:
    """The bubble with which a turn ends: its notice, or its answer."""
    ends = [one for one in shown.bubbles if one.kind in (BubbleKind.NOTICE, BubbleKind.ANSWER)]
    return ends[-1].key if ends else ""


def _wanted(seen: TurnEvidence, shown: View) -> Mapping[str, list[WantedPart]]:
    """What the chat is to show of a turn that is over, by bubble."""
    platform = platform_of(seen.session.key.partition("/")[0]) if seen.session is not None else None
    pieces = platform.pieces() if platform is not None else None

    def parts(markdown: str, growing: bool) -> tuple[Piece, ...]:
        return pieces(markdown, growing=growing) if pieces is not None else (Styled(markdown),)

    traits = Traits(drafts=False, cards=platform is not None and platform.cards)
    found: dict[str, list[WantedPart]] = {}
    for one in picture(shown, seen.turn.turn, parts, traits=traits, reply_to="").wanted:
        found.setdefault(one.bubble, []).append(one)
    return found


def _by_bubble(parts: Sequence[KeptPart], wanted: Mapping[str, object]) -> dict[str, list[KeptPart]]:
    """The parts of each bubble, with what came in their place, in their order."""
    found: dict[str, list[KeptPart]] = {}
    for one in sorted(parts, key=lambda one: (one.row.place, len(one.row.bubble), one.row.part)):
        bubble = _TOP.sub("", one.row.bubble)
        above, _, kind = bubble.rpartition(".")
        known = bubble not in wanted and above in wanted and kind in list(ContentKind)
        found.setdefault(above if known else bubble, []).append(one)
    return found


def _stands(one: KeptPart) -> bool:
    """It is to be seen."""
    return not one.row.gone


def _taken_away(one: KeptPart) -> bool:
    """Somebody in the chat, or an operator, has taken it away, and that is written down."""
    return one.row.gone and one.row.state is DeliveryState.SKIPPED and bool(one.row.cause)


def _same_words(
    seen: TurnEvidence, bubble: str, wanted: Sequence[WantedPart], mine: Sequence[KeptPart]
) -> Iterator[Breach]:
    """What stands there says the same, and in as many parts."""
    if any(one.row.state is DeliveryState.SKIPPED or one.row.cause.startswith(INSTEAD) for one in mine):
        return  # it says itself that it is shown otherwise
    numbers = [one.row.part for one in mine if one.row.bubble == _TOP.sub("", one.row.bubble)]
    missing = sorted({one.part for one in wanted} - set(numbers))
    said, shows = _said([one.content for one in wanted]), _said([decode(one.row.want) for one in mine])
    if said == shows:
        return
    turn = seen.turn.turn
    if missing and len(shows) < len(said):
        words = f"Of {bubble} of turn {turn}, part {missing[0] + 1} of {len(wanted)} is not there."
        yield breach(seen, Law.GAP, words)
    elif sorted(said) == sorted(shows):
        yield breach(
            seen, Law.MISPLACED, f"The parts of {bubble} of turn {turn} are in another order than the turn said them."
        )
    else:
        words = (
            f"{bubble} of turn {turn} is shown in other words than the turn said: {len(shows)} words for {len(said)}."
        )
        yield breach(seen, Law.OTHER_WORDS, words)


def _said(contents: Sequence[Content]) -> list[str]:
    """The words of contents, in their order."""
    return [word for one in contents for word in _WORD.findall(one.body.text + " " + one.file_text)]


def _in_order(seen: TurnEvidence, wanted: Sequence[str], there: Mapping[str, Sequence[KeptPart]]) -> Iterator[Breach]:
    """What stands there has its places in the order in which it was wanted."""
    standing = [(bubble, [one for one in there.get(bubble, ()) if _stands(one)]) for bubble in wanted]
    placed = [
        (bubble, max(one.row.place for one in parts), min(one.row.place for one in parts))
        for bubble, parts in standing
        if parts
    ]
    for (one, last, _), (other, _, first) in pairwise(placed):
        if first < last:
            words = f"{other} of turn {seen.turn.turn} has its place before {one}, which was said first."
            yield breach(seen, Law.MISPLACED, words)


def _behind_the_turn_before(seen: TurnEvidence, mine: Sequence[KeptPart]) -> Iterator[Breach]:
    """Answers come in the order of the questions: what a turn ended with has its place before the next one begins."""
    said = [one for one in seen.parts_before if _stands(one) and decode(one.row.want).kind in _WORDS]
    for one in filter(_stands, mine):
        above = [other for other in said if other.row.surface == one.row.surface and other.row.place > one.row.place]
        if above:
            words = f"Part {one.row.key} has its place before part {above[0].row.key} of the turn before."
            yield breach(seen, Law.MISPLACED, words)
            return
