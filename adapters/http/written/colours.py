"""How code is coloured: a job of a worker, as what knows the languages takes memory, and some texts take it long.

It gives how many characters belong to which of a few kinds; the page draws them over the text, which stays as it is.
"""

from __future__ import annotations

from agent_core.jsonvalue import Json
from agent_core.workers.pool import Job

MOST_CHARS = 20_000
"""Longer code is shown without colours."""
JOB = Job("adapters.http.written.colours:work", 3.0, 500_000)
KINDS = (
    ("comment", "Comment"),
    ("string", "Literal.String"),
    ("number", "Literal.Number"),
    ("keyword", "Keyword"),
    ("keyword", "Operator.Word"),
    ("name", "Name.Function"),
    ("name", "Name.Class"),
    ("name", "Name.Tag"),
    ("name", "Name.Attribute"),
    ("name", "Name.Decorator"),
    ("keyword", "Name.Builtin"),
    ("bad", "Generic.Deleted"),
    ("string", "Generic.Inserted"),
    ("name", "Generic.Heading"),
    ("name", "Generic.Subheading"),
)
"""By what Pygments says of a piece, the first that fits."""


def work(request: dict[str, Json], blob: bytes) -> Json:
    """``language`` and the text to a list of kinds and lengths; empty if nobody knows the language."""
    from pygments.lexers import find_lexer_class_by_name
    from pygments.token import string_to_tokentype
    from pygments.util import ClassNotFound

    try:
        lexer = find_lexer_class_by_name(str(request["language"]))(stripnl=False, ensurenl=False)
    except ClassNotFound:
        return []
    kinds = [(kind, string_to_tokentype(name)) for kind, name in KINDS]
    runs: list[Json] = []
    # Some patterns end only with a line, so there is one more; it does not count.
    last, chars = "", 0
    for token, text in lexer.get_tokens(f"{blob.decode()}\n"):
        kind = next((kind for kind, of in kinds if token in of), "")
        if kind != last and chars:
            runs.append([last, chars])
            chars = 0
        last, chars = kind, chars + len(text)
    return [*runs, [last, chars - 1]] if chars > 1 else runs
