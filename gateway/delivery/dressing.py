"""How a part's content goes out after what was met with it. Pure."""

from __future__ import annotations

from dataclasses import replace

from adapters.contract.chat import Ability, Cause, ChatAddress, Content, ContentKind, Traits
from adapters.delivery.reconcile import Part
from adapters.text.styled import Styled

LABEL = "(Sent again after an interruption; you may see this twice.)\n\n"
ASTRAY = "(This belongs to a topic that is not there any more.)\n\n"


def as_sent(part: Part, address: ChatAddress, ability: Ability, traits: Traits) -> Content:
    """The content as it goes out: without form if that was refused, with a label if it may be there already."""
    content = part.content
    body = Styled(content.body.text) if part.row.plain else content.body
    buttons = () if part.row.plain else content.buttons
    feedback, tasks = ("", ()) if part.row.plain else (content.feedback, content.tasks)
    lost = part.row.cause == Cause.NO_THREAD.value
    reply_to = "" if lost or (part.row.plain and not traits.replies) else content.reply_to
    if part.row.labelled and ability is Ability.NONE and content.kind is not ContentKind.STATUS:
        body = Styled(LABEL) + body
    if lost and address.thread:
        body = Styled(ASTRAY) + body
    return replace(content, body=body, buttons=buttons, reply_to=reply_to, feedback=feedback, tasks=tasks)
