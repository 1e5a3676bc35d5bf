"""Whether a model says that it is done: by itself, then what it had said before is the answer; or when it is asked. Pure."""

from __future__ import annotations

import re
import unicodedata

from agent_core.rules.promising.language import phrases

FEW_CHARS = 60
"""Of more characters than these it says something of its own."""

DOUBTED_CHARS = 1_500
"""Of a doubtful reply the model is shown its end."""
_DONE = phrases("done")


def says_done(text: str) -> bool:
    if len(text) > FEW_CHARS:
        return False
    plain = unicodedata.normalize("NFC", text.lower().replace("’", "'")).strip(" \t\r\n*_~`\"'.!。！।۔✅👍")
    return _DONE.fullmatch(plain) is not None


def done_question(reply: str) -> str:
    """The question to the model about a reply of its whose end leaves that open."""
    return (
        "An assistant that can use tools ended its reply with the text between the lines. After it, nothing more was done.\n\n"
        f"-----\n{reply.rstrip()[-DOUBTED_CHARS:]}\n-----\n\n"
        "Is the reply finished as it stands (an answer, a report, an offer, a question), or does it announce something that the assistant "
        "itself was going to do next? Reply with one word: FINISHED or ANNOUNCES."
    )


def read_done(said: str) -> bool | None:
    """What the model's word comes to; None if it is neither."""
    words = re.findall(r"[a-z]+", said[-200:].lower())
    finished, announces = "finished" in words, "announces" in words
    return None if finished == announces else finished
