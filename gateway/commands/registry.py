"""The commands that people have in chats: one registry, from which every platform makes its own menu. Words only; pure."""

from __future__ import annotations

from collections.abc import Sequence

from agent_core.records import dataclass
from agent_core.store.turns.rows import Usage
from agent_core.text.tongue import command as typed
from agent_core.text.tongue import number, sentence, speak, speak_many
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
    CommandSpec("new", sentence("begin a new conversation")),
    CommandSpec("stop", sentence("stop what is running (“{/stop all}” empties the queue, too)")),
    CommandSpec("retry", sentence("answer the last message once more")),
    CommandSpec("undo", sentence("forget the last message and its answer")),
    CommandSpec("status", sentence("what is going on here"), changes=False),
    CommandSpec("why", sentence("why the last answer went as it did"), changes=False),
    CommandSpec("model", sentence("show or choose the model")),
    CommandSpec("agent", sentence("show or choose the agent that answers here"), agents=True),
    CommandSpec("queue", sentence("queue a message, or show what waits (“{/queue always}” makes it the rule)")),
    CommandSpec("steer", sentence("put a message into the running answer (“{/steer always}” makes it the rule)")),
    CommandSpec("answer", "answer what a running tool asks (“{/answer decline}” refuses it)", hidden=True),
    CommandSpec(
        "remind",
        sentence("“{/remind in 20 minutes tea}”; alone it shows what is set, “{/remind cancel 1}” takes it back"),
    ),
    CommandSpec(
        "timezone", sentence("show or set the time zone that times are meant in (“{/timezone Europe/Berlin}”)")
    ),
    CommandSpec("resume", sentence("continue a conversation of yours in this chat (“{/resume NUMBER}”)"), people=True),
    CommandSpec("link", sentence("join your accounts by a code, or show which are joined"), people=True),
    CommandSpec("unlink", sentence("take an account out again"), people=True),
    CommandSpec("usage", sentence("what this conversation has used, and what the budgets are"), changes=False),
    CommandSpec(
        "language", sentence("show or choose the language that I speak in notices and menus (“{/language de}”)")
    ),
    CommandSpec(
        "files", sentence("the files kept here (“{/files delete NAME}” removes one, “{/files delete all}” all)")
    ),
    CommandSpec("memory", sentence("what is remembered here (“{/memory WORDS}” searches in it)"), changes=False),
    CommandSpec(
        "forget", sentence("“{/forget NAME}” removes what is remembered under a name, “{/forget all}” all of it")
    ),
    CommandSpec(
        "instructions",
        sentence("show or say what you want of every answer (“{/instructions Be brief.}”, “{/instructions off}”)"),
    ),
    CommandSpec(
        "approvals",
        sentence("what you have approved for longer than once (“{/approvals revoke NUMBER}” takes it back)"),
    ),
    CommandSpec(
        "tasks",
        sentence(
            "the background tasks here, how far they are and what they have used (“{/tasks stop NUMBER}” ends one)"
        ),
    ),
    CommandSpec("help", sentence("what can be done here"), changes=False),
    CommandSpec(
        "redo",
        "ask a message once more, in other words if there are any; what came of it and after it is taken back",
        hidden=True,
    ),
    CommandSpec("access", "list, approve CODE, revoke ID", admin=True, hidden=True),
    CommandSpec("start", "say hello", hidden=True, changes=False),
    CommandSpec("press", "a button was pressed", hidden=True),
    CommandSpec("happen", "something scheduled is due", hidden=True, own=True, changes=False),
    CommandSpec("hold", "a message waits for its time, or for room", hidden=True, own=True, changes=False),
    CommandSpec("post", "whoever runs the gateway says something", hidden=True, own=True, changes=False),
    CommandSpec("control", "somebody wants something at another gateway", hidden=True, own=True, changes=False),
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
    lines = [f"{typed(one.name)} – {speak(one.words)}" for one in shown]
    head = speak("Just write to me. I answer, use tools where they help, and always say how it ended.")
    return "\n".join(part for part in (head, rehearsal, "\n".join(lines)) if part)


def doing_words(view: View) -> str:
    """What a running turn is doing."""
    status = next((b.text for b in view.bubbles if b.kind is BubbleKind.STATUS), "")
    running = [b for b in view.bubbles if b.kind is BubbleKind.ACTIVITY and b.state == "running"]
    asking = [b for b in view.bubbles if b.kind is BubbleKind.APPROVAL]
    asked = [b for b in view.bubbles if b.kind is BubbleKind.QUESTION and not b.final]
    if asked:
        return speak("It waits for your answer: {question}", question=asked[-1].text)
    if asking:
        return speak("It waits for your decision: {question}", question=f"{asking[-1].text}\n{asking[-1].left}")
    if running:
        lasted = [(b.text, speak("{count} s", count=b.seconds)) for b in running]
        return speak("Running {what}", what="; ".join(f"{text} ({seconds})" for text, seconds in lasted))
    return status or speak("The model is at work.")


def status_words(
    *, running: View | None, seconds: int, waiting: Sequence[str], model: str, unsent: int, troubles: Sequence[str]
) -> str:  # fmt: skip
    """What is going on in a chat."""
    lines = [
        speak("Working for {seconds} s. {doing}", seconds=seconds, doing=doing_words(running))
        if running is not None
        else speak("Nothing is running here.")
    ]
    if waiting:
        waits = speak_many(
            "{count} message waits: {what}", "{count} messages wait: {what}", len(waiting), what="; ".join(waiting[:5])
        )
        lines.append(waits)
    lines.append(speak("Model: {model}", model=model))
    if unsent:
        lines.append(speak("Parts still to be delivered: {count}.", count=unsent))
    lines += troubles
    return "\n".join(lines)


def usage_words(session: Usage, today: Usage) -> str:
    """What a conversation has used."""

    def one(usage: Usage) -> str:
        return speak_many(
            "{count} answer, {read} tokens in, {written} out",
            "{count} answers, {read} tokens in, {written} out",
            usage.turns,
            read=number(usage.input_tokens),
            written=number(usage.output_tokens),
        )

    return speak("This conversation today: {today}\nIn all: {all}", today=one(today), all=one(session))


def queued_words(position: int) -> str:
    """What is told of a message that has to wait."""
    return speak_many(
        "⏳ Queued – one answer before this one. {/stop} ends the running one, {/queue} shows what waits.",
        "⏳ Queued – {count} answers before this one. {/stop} ends the running one, {/queue} shows what waits.",
        position,
    )


def line_words(line: int) -> str:
    """What is told of a message that waits until the gateway has room for its turn."""
    return speak(
        "⏳ Many people are asking just now – your place in the queue is {line}. {/stop} takes your message out.",
        line=line,
    )
