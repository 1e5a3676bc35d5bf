"""The commands that people have in chats: one registry, from which every platform makes its own menu. Words only; pure."""

from __future__ import annotations

from collections.abc import Sequence

from agent_core.records import dataclass
from agent_core.store.turns.rows import Usage
from agent_core.turn.view import BubbleKind, View


@dataclass(frozen=True, slots=True)
class CommandSpec:
    name: str
    words: str
    """What it does, in a line."""
    admin: bool = False
    hidden: bool = False
    """Works, but is in no menu."""
    people: bool = False
    """Shown only where people may join their accounts."""
    agents: bool = False
    """Shown only where there are several agents."""
    own: bool = False
    """Nobody can type it: the gateway gives it to itself, so that it is stored and carried out like the others."""
    changes: bool = True
    """It changes something, so that several of one chat are carried out one after the other."""


COMMANDS: tuple[CommandSpec, ...] = (
    CommandSpec("new", "begin a new conversation"),
    CommandSpec("stop", "stop what is running (“/stop all” empties the queue, too)"),
    CommandSpec("retry", "answer the last message once more"),
    CommandSpec("undo", "forget the last message and its answer"),
    CommandSpec("status", "what is going on here", changes=False),
    CommandSpec("why", "why the last answer went as it did", changes=False),
    CommandSpec("model", "show or choose the model"),
    CommandSpec("agent", "show or choose the agent that answers here", agents=True),
    CommandSpec("queue", "queue a message, or show what waits (“/queue always” makes it the rule)"),
    CommandSpec("steer", "put a message into the running answer (“/steer always” makes it the rule)"),
    CommandSpec("remind", "“/remind in 20 minutes tea”; alone it shows what is set, “/remind cancel 1” takes it back"),
    CommandSpec("timezone", "show or set the time zone that times are meant in (“/timezone Europe/Berlin”)"),
    CommandSpec("resume", "continue a conversation of yours in this chat (“/resume NUMBER”)", people=True),
    CommandSpec("link", "join your accounts by a code, or show which are joined", people=True),
    CommandSpec("unlink", "take an account out again", people=True),
    CommandSpec("usage", "what this conversation has used, and what the budgets are", changes=False),
    CommandSpec("files", "the files kept here (“/files delete NAME” removes one, “/files delete all” all)"),
    CommandSpec("memory", "what is remembered here (“/memory WORDS” searches in it)", changes=False),
    CommandSpec("forget", "“/forget NAME” removes what is remembered under a name, “/forget all” all of it"),
    CommandSpec("help", "what can be done here", changes=False),
    CommandSpec("access", "list, approve CODE, revoke ID", admin=True, hidden=True),
    CommandSpec("start", "say hello", hidden=True, changes=False),
    CommandSpec("press", "a button was pressed", hidden=True),
    CommandSpec("happen", "something scheduled is due", hidden=True, own=True, changes=False),
    CommandSpec("post", "whoever runs the gateway says something", hidden=True, own=True, changes=False),
)
BY_NAME = {command.name: command for command in COMMANDS}
TYPED = frozenset(command.name for command in COMMANDS if not command.own)
"""What people can type."""


def menu(*, people: bool = False, agents: bool = False) -> tuple[CommandSpec, ...]:
    """The commands that a platform shows; `people` may join their accounts, or not; there are several `agents`, or not."""
    return tuple(
        command
        for command in COMMANDS
        if not command.hidden and (people or not command.people) and (agents or not command.agents)
    )


def help_words(*, admin: bool, rehearsal: str, people: bool = False, agents: bool = False) -> str:
    """What can be done here."""
    shown = [
        *menu(people=people, agents=agents),
        *(command for command in COMMANDS if command.hidden and command.admin and admin),
    ]
    lines = [f"/{command.name} – {command.words}" for command in shown]
    head = "Just write to me. I answer, use tools where they help, and always say how it ended."
    return "\n".join(part for part in (head, rehearsal, "\n".join(lines)) if part)


def doing_words(view: View) -> str:
    """What a running turn is doing."""
    status = next((b.text for b in view.bubbles if b.kind is BubbleKind.STATUS), "")
    running = [b for b in view.bubbles if b.kind is BubbleKind.ACTIVITY and b.state == "running"]
    asking = [b for b in view.bubbles if b.kind is BubbleKind.APPROVAL]
    if asking:
        return "It waits for your decision: " + asking[-1].text
    if running:
        return "Running " + "; ".join(f"{b.text} ({b.seconds} s)" for b in running)
    return status or "The model is at work."


def status_words(
    *, running: View | None, seconds: int, waiting: Sequence[str], model: str, unsent: int, troubles: Sequence[str]
) -> str:  # fmt: skip
    """What is going on in a chat."""
    lines = [f"Working for {seconds} s. {doing_words(running)}" if running is not None else "Nothing is running here."]
    if waiting:
        lines.append(
            f"{len(waiting)} {'message waits' if len(waiting) == 1 else 'messages wait'}: " + "; ".join(waiting[:5])
        )
    lines.append(f"Model: {model}")
    if unsent:
        lines.append(f"{unsent} parts are still to be delivered.")
    lines += troubles
    return "\n".join(lines)


def usage_words(session: Usage, today: Usage) -> str:
    """What a conversation has used."""

    def one(usage: Usage) -> str:
        return f"{usage.turns} answers, {usage.input_tokens:,} tokens in, {usage.output_tokens:,} out"

    return f"This conversation today: {one(today)}\nIn all: {one(session)}"


def queued_words(position: int) -> str:
    """What is told of a message that has to wait."""
    before = "one answer" if position == 1 else f"{position} answers"
    return f"⏳ Queued – {before} before this one. /stop ends the running one, /queue shows what waits."


def line_words(line: int) -> str:
    """What is told of a message that waits until the gateway has room for its turn."""
    return f"⏳ Many people are asking just now – your place in the queue is {line}. /stop takes your message out."
