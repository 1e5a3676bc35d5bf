"""The page ``docs/families.md``: in which forms calls and thoughts are read from text, printed from the code that reads them. Pure.

``python -m tests.printed.families > docs/families.md``; a test compares the two (tests/docs/test_generated.py).
"""

from __future__ import annotations

import sys

from agent_core.model.families.family import Family
from agent_core.model.families.registry import FAMILIES
from agent_core.model.stream.thoughts import PAIRS, TAGS

_HEAD = """# Calls and thoughts in the text

<!-- Printed by `python -m tests.printed.families`; do not edit. -->

A server that does not know a model passes its tool calls and its thoughts on as ordinary text, in the model's own marks. `outspoken` reads them
as they arrive: calls are run, thoughts are not shown, and nobody sees a mark or half of one. Nothing has to be configured.

## Calls

| family | models | form | source |
|---|---|---|---|
"""
_RULES = """
Arguments that come as plain text become what the tool's schema says they are: numbers, truth values, lists, objects; text stays text to the letter.

| what comes | what becomes of it |
|---|---|
| a call that is whole, and only its last mark is missing (some servers swallow it) | a call |
| a call with a name, whose arguments cannot be read | the model is told what is wrong with them, as with any unreadable arguments |
| a call of a tool that is not on offer | the model is told which tools there are |
| a call that the end of the text cut, or without a name | a failed call: the model is asked again; see [exits.md](exits.md) |
| an example in a code block (with anything around it), a code span, a quotation (`>`) or behind an opening quotation mark | text, word for word |
| a mark that nothing like a call follows | text, word for word |
| JSON or Python alone, without a mark, or in a code block that is the whole reply | a call only if it is the whole reply and names tools on offer; else text, shown as soon as that is clear |

## Thoughts

A thought begins at its mark, wherever that stands, and ends at its last one; marks inside of one nest. One that never ends is a thought to the end of
the text; calls at its very end are calls all the same. Inside a sentence a tag counts only if its end tag stands in that sentence, with more than a
word like "and" between them. The marks:

"""
_ALONE = """
- gpt-oss: the channel `analysis`, also if a server has dropped the special tokens (`analysis…assistantfinal…`);
- Granite 3.2: `Here is my thought process: … Here is my response:`.

Some chat templates write the opening mark themselves, so only `</think>` comes. Then all text before it was a thought. What was shown of it is
taken back on the page and in chats; a stream of the API cannot take anything back, and goes on with the answer as a new paragraph. From then on the
beginning of that model's replies at that endpoint is kept back until its thoughts end; a reply without them is shown whole at its end, and the next
ones are streamed again. That is known until the gateway is restarted. Such a reply without any end of a thought is read as if nothing had been
known, so an opening mark in it begins a thought. If a thought was cut and the model was asked to go on, what the cut call had shown is taken back with
it, unless this model's replies are known to begin with the answer.
"""


def _row(family: Family) -> str:
    return f"| {family.name} | {family.models} | {family.form.replace('|', chr(92) + '|')} | {family.source} |\n"


def markdown() -> str:
    """The whole page."""
    tags = ", ".join(f"`<{name}>`" for name in TAGS)
    pairs = ", ".join(f"`{opening}`" for opening, _ in PAIRS)
    marks = f"- tags, in any case and with any attributes: {tags};\n- marks: {pairs};"
    return _HEAD + "".join(map(_row, FAMILIES)) + _RULES + marks + _ALONE


if __name__ == "__main__":
    sys.stdout.write(markdown())
