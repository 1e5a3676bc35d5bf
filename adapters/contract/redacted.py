"""What a platform or a tool said, without our secrets: an error may repeat the request, with the token in its address or its headers.

Such words go to logs, to the status, into the database and into chats, so they are cleaned where they come in: as the words of `CallFailed` and
`AdapterDown`. Which secrets there are is known to the process, as its log's are.
"""

from __future__ import annotations

from agent_core.text.redaction import Redactor


class _Current:
    redactor = Redactor.of(())
    """Until somebody says more, what can be told by its form."""


def set_redactor(redactor: Redactor) -> Redactor:
    """From now on none of its secrets is in any words of a failure; the same redactor."""
    _Current.redactor = redactor
    return redactor


def hidden(words: str) -> str:
    """The words without our secrets, and otherwise as they are."""
    return _Current.redactor.hide(words)


def redacted(words: str) -> str:
    """The words without any secret."""
    return _Current.redactor.redact(words)
