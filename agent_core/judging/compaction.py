"""What to do when the conversation no longer fits: which part is summed up, in which words. Pure.

Theory. A session's history is a list of groups, one a turn. Compaction keeps the latest groups word for word and lets a summary
stand for the earlier ones: the model's own if it can be had, else a plain digest. Within the running turn, long tool results
are shortened. If neither can free anything, compaction has not helped, and the turn says so.

Law (tests/agent_core/test_compaction.py): a kept group is kept whole; the latest group is never given up for an earlier one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

import orjson

from agent_core.failures.leftout import LeftOut
from agent_core.jsonvalue import Json
from agent_core.messages import THOUGHTS, Message, ToldConversation, text_of
from agent_core.records import dataclass
from agent_core.rules.consents import Kind, Lasting
from agent_core.turn.standing import Standing
from agent_core.turn.state import ConsentGiven
from agent_core.turn.transcript import TOO_MUCH, alternating, call_ids, closed_turn_messages, repaired

ELIDE_RESULTS_OVER_CHARS = 2_000
SUMMARY_REQUEST_CHARS = 48_000
_CHARS_A_MESSAGE = 2_000
SYSTEM = ("system", "developer")
MOST_LEFT_OUT = 50

SUMMARY_PROMPT = (
    "Sum up the following conversation between a person and an assistant, so that the assistant can go on from it without "
    "having read it. Keep decisions, facts, names, file paths, open tasks and what the person wants. Leave out courtesies. "
    "Write at most 500 words, in the language of the conversation."
)

Group = list[Message]


def estimate_tokens(messages: Sequence[Message], extra_bytes: int = 0) -> int:
    """About how many tokens `messages` are: their JSON bytes ÷ 3.6, plus a tenth as a margin."""
    size = messages.size if isinstance(messages, ToldConversation) else len(orjson.dumps(list(messages)))
    return round((size + extra_bytes) / 3.6 * 1.1)


@dataclass(frozen=True, slots=True)
class ToldTurn:
    """What a closed turn leaves behind for later ones."""

    group: Group = field(default_factory=Group)
    """Its messages; never changed."""
    summary: str = ""
    """Where it compacted the history: what stands for the turns before the `kept_turns` last ones."""
    kept_turns: int = 0
    left_out: tuple[LeftOut, ...] = ()
    """What a provider refused of the conversation, as far as leaving it out has helped."""
    foreign: bool = False
    """Its model had read words of others, so that its own may be theirs."""
    consents: tuple[tuple[Kind, ConsentGiven], ...] = ()
    """What was agreed to for the conversation."""


def told_turn(turn: Standing) -> ToldTurn:
    """What a closed turn leaves behind."""
    group = closed_turn_messages(turn)
    left_out = tuple(turn.kept_out)
    foreign = bool(turn.foreign) if turn.opened is not None else False
    consents = tuple(
        (kind, given) for kind, given in turn.round.consents.items() if given.lasts is Lasting.CONVERSATION
    )
    if turn.compacted is None or not turn.compacted.summary or (turn.exit is not None and turn.exit.code in TOO_MUCH):
        return ToldTurn(group, left_out=left_out, foreign=foreign, consents=consents)
    return ToldTurn(group, turn.compacted.summary, turn.compacted.kept_turns, left_out, foreign, consents)


class SessionMemory:
    """A session's conversation as the model is told it, turn by turn.

    It is kept as it is sent: each turn is encoded once, when it has ended. Where all turns are plain, a request takes them as they lie here,
    and a long past costs what a short one does.
    """

    __slots__ = (
        "_foreign",
        "_ids",
        "_most",
        "_rough",
        "_since",
        "_summed",
        "_system",
        "_turns",
        "consents",
        "left_out",
        "size",
        "summary",
    )

    def __init__(self, most: int | None = None) -> None:
        """At most so many turns are told; None: all."""
        self.summary = ""
        """Stands for the turns before `groups`."""
        self.left_out: tuple[LeftOut, ...] = ()
        """What is left out of them, by model; the latest last, and at most `MOST_LEFT_OUT`."""
        self.size = 0
        """Bytes."""
        self._most = most
        self._ids: set[str] = set()
        self._turns: list[bytes] = []
        self._rough: list[bool] = []
        self._system: list[list[Json]] = []
        """Of each turn: what the client said in the system's name."""
        self._foreign: list[bool] = []
        """Of each turn: whether words of others may stand in it."""
        self._summed = False
        """Whether they may in the summary: a turn that writes one has read all that it sums up."""
        self.consents: dict[Kind, ConsentGiven] = {}
        """What was agreed to for the conversation."""
        self._since = 0
        """How many turns there have been since the one that wrote the summary, with that."""

    def add(self, turn: Standing) -> None:
        """Take in a closed turn."""
        self.take(told_turn(turn))

    def take(self, told: ToldTurn) -> None:
        """Take in what a turn left behind; one that compacted the history replaces the part that it summed up."""
        if told.summary:
            self.summary, self._since, self._summed = told.summary, 0, told.foreign
            self._keep(told.kept_turns)
        if told.group:
            self._turns.append(orjson.dumps(told.group)[1:-1])
            self._rough.append(not plain(told.group))
            self._system.append(system_of(told.group))
            for message in told.group:
                if "tool_calls" in message:
                    self._ids.update(call_ids(message))
            self._foreign.append(told.foreign)
            self.size += len(self._turns[-1])
            self._since += 1
        if self._most is not None:
            self._keep(self._most)
            if self._since > self._most:
                self.summary = ""
        self.consents.update(told.consents)
        others = (one for one in self.left_out if one not in told.left_out)
        self.left_out = (*others, *told.left_out)[-MOST_LEFT_OUT:]

    def _keep(self, latest: int) -> None:
        over = len(self._turns) - latest
        if over > 0:
            self.size -= sum(map(len, self._turns[:over]))
            del self._turns[:over], self._rough[:over], self._system[:over], self._foreign[:over]

    @property
    def foreign(self) -> bool:
        """Words of others may stand in what the model is told."""
        return (bool(self.summary) and self._summed) or True in self._foreign

    @property
    def call_ids(self) -> frozenset[str]:
        """What calls are known by: the next ones are not to be known by the same."""
        return frozenset(self._ids)

    @property
    def standing(self) -> list[Json]:
        """What the client said last in the system's name, as far as it is still told."""
        nothing: list[Json] = []
        return next((said for said in reversed(self._system) if said), nothing)

    @property
    def groups(self) -> list[Group]:
        """The messages of each turn."""
        return [orjson.loads(b"[" + turn + b"]") for turn in self._turns]

    @property
    def sent(self) -> bytes | None:
        """All messages as they are sent, with commas between them; None if some of them depend on who gets them."""
        return None if True in self._rough else b",".join(self._turns)


def system_of(messages: Sequence[Message]) -> list[Json]:
    """The contents of messages in the system's name."""
    return [message.get("content") for message in messages if message.get("role") in SYSTEM]


def plain(group: Group) -> bool:
    """Whether these messages go to every model as they are, whatever stands before or behind them: begun by the person, ended by the model,
    and nothing but text in them."""
    ends = group[0].get("role") == "user" and group[-1].get("role") == "assistant" and not group[-1].get("tool_calls")
    text = all(isinstance(m.get("content"), str | None) and THOUGHTS not in m for m in group)
    return ends and text and alternating(repaired(group)) == group


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """What a compaction gives up and what it keeps."""

    given_up: tuple[Group, ...]
    kept: tuple[Group, ...]
    shortens_results: bool
    """The running turn has tool results that can be shortened."""

    @property
    def helps(self) -> bool:
        return bool(self.given_up) or self.shortens_results


def groups_of(messages: Sequence[Message]) -> tuple[list[Message], list[Group]]:
    """A client's flat conversation as (system messages, groups); a group begins with a person's message."""
    system = [m for m in messages if m.get("role") in SYSTEM]
    groups: list[Group] = []
    for message in messages:
        if message.get("role") in SYSTEM:
            continue
        starts = message.get("role") == "user" and not (groups and groups[-1][-1].get("role") == "user")
        if starts or not groups:
            groups.append([])
        groups[-1].append(message)
    return system, groups


def plan(groups: Sequence[Group], current: Sequence[Message], window_tokens: int) -> CompactionPlan:
    """Keep as many of the latest groups as fit into a third of the window beside the running turn's messages."""
    room = max(0, window_tokens // 3 - estimate_tokens(current) // 2)
    kept = 0
    for group in reversed(groups):
        size = estimate_tokens(group)
        if size > room:
            break
        room -= size
        kept += 1
    if kept == len(groups) and groups:
        kept = len(groups) // 2  # the provider says that it does not fit, whatever we count
    cut = len(groups) - kept
    long = [m for m in current if m.get("role") == "tool" and len(text_of(m.get("content"))) > ELIDE_RESULTS_OVER_CHARS]
    return CompactionPlan(tuple(groups[:cut]), tuple(groups[cut:]), shortens_results=len(long) > 2)


def summary_request(earlier: str, given_up: Sequence[Group]) -> list[Message]:
    """The conversation with which the model is asked for a summary."""
    parts = [f"Summary of what came before:\n{earlier}"] if earlier else []
    parts += [f"{message.get('role')}: {_cut(text_of(message.get('content')))}" for g in given_up for message in g]
    text = "\n\n".join(part for part in parts if part)
    if len(text) > SUMMARY_REQUEST_CHARS:
        half = SUMMARY_REQUEST_CHARS // 2
        text = f"{text[:half]}\n\n[…]\n\n{text[-half:]}"
    return [{"role": "system", "content": SUMMARY_PROMPT}, {"role": "user", "content": text}]


def _cut(text: str, limit: int = _CHARS_A_MESSAGE) -> str:
    return text if len(text) <= limit else f"{text[:limit]} […]"


def digest(earlier: str, given_up: Sequence[Group], limit_chars: int = 6_000) -> str:
    """A summary without a model: what was asked and what the last words on it were, the latest first to be kept."""
    lines: list[str] = []
    for group in reversed(given_up):
        asked = next((text_of(m.get("content")) for m in group if m.get("role") == "user"), "")
        said = next((text_of(m.get("content")) for m in reversed(group) if m.get("role") == "assistant"), "")
        line = f"- Asked: {_cut(' '.join(asked.split()), 200)} – Reply: {_cut(' '.join(said.split()), 200)}"
        if sum(map(len, lines)) + len(line) > limit_chars:
            lines.append("- (earlier messages left out)")
            break
        lines.append(line)
    text = "\n".join(reversed(lines))
    return f"{_cut(earlier, 2_000)}\n{text}".strip() if earlier else text


def summary_words(summary: str) -> str:
    """How a summary is put before the model, at the end of the system prompt."""
    return f"The earlier part of this conversation was left out to save space. Summary by the gateway:\n{summary}"
