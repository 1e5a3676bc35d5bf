"""Text that UTF-8 can spell, whatever came.

JSON can spell half a surrogate pair, and some servers send one: where a character was cut in two, or out of malice. Neither the database nor
a platform takes it. So what is read from outside by a reader that lets halves through goes through here before anything else.
"""

from __future__ import annotations


def well_formed(text: str) -> str:
    """`text`, with the halves of a pair joined where they stand together, and any other half replaced by U+FFFD."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
