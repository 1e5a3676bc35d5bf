"""Our contents in Slack's forms: mrkdwn for `text`, blocks beside it, and the chunks of a stream. Pure.

Every content has a `text` that says it whole: for notifications, for people who cannot see blocks, and for the day on which Slack
refuses them. Blocks: https://docs.slack.dev/reference/block-kit/blocks. Chunks: the page of ``chat.appendStream``.
"""

from __future__ import annotations

from typing import Any

from adapters.contract.chat import Button, ButtonStyle, Content, ContentKind, Flow, Task, TaskState
from adapters.slack.pieces import LIMIT_UNITS
from adapters.text.markup import SLACK, SLACK_MARKDOWN, escaped_within, render
from agent_core.text.tongue import speak, speaking

Blocks = list[dict[str, Any]]

SECTION_CHARS = 2_900
"""Of the text in a block beside buttons; 3 000 are allowed."""
TITLE_CHARS = 250
"""Of a task; 256 are allowed in a stream."""
_RAW = (ContentKind.STATUS, ContentKind.ASIDE, ContentKind.APPROVAL, ContentKind.TOOLS)
"""Words of the gateway's own, which are no markup."""
_STATES = {
    TaskState.WAITING: "pending",
    TaskState.RUNNING: "in_progress",
    TaskState.DONE: "complete",
    TaskState.FAILED: "error",
}


def text_of(content: Content) -> str:
    """The content as mrkdwn."""
    if content.kind in _RAW:
        return escaped_within(content.body.text, SLACK, SECTION_CHARS if content.buttons else LIMIT_UNITS)
    return render(content.body, SLACK)


def blocks_of(content: Content) -> Blocks | None:
    """The content as blocks; None if its text says it as well."""
    match content.kind:
        case ContentKind.TEXT if content.body.spans or content.feedback:
            return [{"type": "markdown", "text": render(content.body, SLACK_MARKDOWN)}, *feedback_of(content)]
        case ContentKind.NOTICE:
            return [*_notice(content), *_actions(content.buttons)]
        case ContentKind.TOOLS if content.tasks:
            return [_card(task) for task in content.tasks]
        case _ if content.buttons:
            return [_section(text_of(content)), *_actions(content.buttons)]
        case _:
            return None


def feedback_of(content: Content) -> Blocks:
    """The buttons under an answer."""
    if not content.feedback:
        return []
    buttons = {
        name: {
            "text": {"type": "plain_text", "text": label},
            "accessibility_label": words,
            "value": f"feedback:{content.feedback}:{word}",
        }
        for name, label, words, word in _ways(content.language)
    }
    return [{"type": "context_actions", "elements": [{"type": "feedback_buttons", "action_id": "feedback", **buttons}]}]


def _ways(language: str) -> tuple[tuple[str, str, str, str], ...]:
    with speaking(language):
        return (
            ("positive_button", speak("Good"), speak("This answer was good"), "good"),
            ("negative_button", speak("Bad"), speak("This answer was not good"), "bad"),
        )


def flow_of(content: Content, *, final: bool) -> Flow:
    """What of a content stands on a stream."""
    if content.kind is ContentKind.TOOLS:
        return Flow(tasks=content.tasks)
    return Flow(render(content.body, SLACK_MARKDOWN, open_end=not final))


def chunks_of(more: Flow) -> Blocks:
    """What a call brings. A stream takes chunks or text for all of its life, so it is always chunks."""
    tasks: Blocks = [
        {"type": "task_update", "id": task.id, "title": task.title[:TITLE_CHARS], "status": _STATES[task.state]}
        for task in more.tasks
    ]
    return [*([{"type": "markdown_text", "text": more.text}] if more.text else []), *tasks]


_STYLES: dict[ButtonStyle, dict[str, str]] = {
    ButtonStyle.PLAIN: {},
    ButtonStyle.AGREES: {"style": "primary"},
    ButtonStyle.REFUSES: {"style": "danger"},
}


def _notice(content: Content) -> Blocks:
    words = text_of(content)
    if len(words) > SECTION_CHARS:
        return [{"type": "markdown", "text": render(content.body, SLACK_MARKDOWN)}]
    return [{"type": "alert", "level": "warning", "text": {"type": "mrkdwn", "text": words}}]


def _card(task: Task) -> dict[str, Any]:
    return {
        "type": "task_card", "task_id": task.id, "title": task.title[:TITLE_CHARS], "status": _STATES[task.state],
    }  # fmt: skip


def _section(text: str) -> dict[str, Any]:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text[:SECTION_CHARS]}}


def _actions(buttons: tuple[Button, ...]) -> Blocks:
    if not buttons:
        return []
    elements = [
        {
            "type": "button",
            "text": {"type": "plain_text", "text": one.label},
            "value": one.data,
            "action_id": one.data,  # each its own: Slack refuses a block in which two have the same
            **_STYLES[one.style],
        }
        for one in buttons
    ]
    return [{"type": "actions", "elements": elements}]
