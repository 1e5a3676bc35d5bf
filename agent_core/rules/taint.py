"""What a turn may do that has read words of others: the table of who sees what of a call, and what an address says. Pure.

A model does what it reads. So a turn whose model has read words that neither the person nor the operator wrote (pages, files, results and declarations
of other programs, forwarded and quoted text) is *tainted*, and whatever of it reaches others needs a person's word, however the words were put.
Nothing here looks at the words themselves: no wording gets past, and none is wrongly suspected.

An address in the arguments of what only reads says something to whoever answers there. It says nothing of the conversation if it stands as it is
in what was read, or if the person has named its host; every other one was composed, and may carry anything.

Laws (tests/agent_core/test_taint.py): an untainted turn is never asked for it; what stays here is never asked about; what reaches outside always
is, unless the operator allows it; more words of others never make an address harmless that they do not hold.

Known to be weak: whoever writes many links can tell which of them was followed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from enum import StrEnum
from urllib.parse import urlsplit

from agent_core.jsonvalue import Json
from agent_core.text.patterns import late
from agent_core.text.tongue import known_sentence, sentence, speak
from agent_core.tools.arguments import parsed
from agent_core.tools.base import Reach


class AskedWhy(StrEnum):
    """Why a person has to agree to a call."""

    ALWAYS = ""
    """The operator wants it of each call of the tool."""
    TAINTED = "tainted"
    """It reaches outside, and the model has read words of others."""
    REPEATED = "repeated"
    """It would be done anew, and of an earlier call nobody knows whether it was done."""

    @property
    def once(self) -> bool:
        """No standing consent covers it."""
        return self is AskedWhy.REPEATED


EARLIER = sentence("earlier in this conversation")
"""Where the words of others stand, if they came in an earlier turn."""
DECLARED = sentence("what other programs say of their tools")
BROUGHT = sentence("results of the client's tools")
ATTACHED = sentence("what was attached")
FORWARDED = sentence("a forwarded message")
"""An address in it was put before the model by the person."""
QUOTED = sentence("a quoted message")
PLANTED = sentence("what was set after words of others had been read")
SHARED = sentence("what was shared: a contact, a place, a preview of a page")

_ADDRESS = late(
    r"(?:[a-z][a-z0-9+.-]{1,20}:[/\\]{1,3}|(?:https?|ftp|mailto):|(?<![^\s\"'])[/\\]{2})[^\s\"'<>]+", re.IGNORECASE
)
_HOST = late(r"(?<![\w./\\-])(?:[\w-]{1,63}\.){1,30}[^\W\d_]{2,63}(?::\d{1,5})?(?:[/?#][^\s\"'<>]*)?")
_NUMBERS = late(r"(?<![\w./-])\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?(?:[/?#][^\s\"'<>]*)?")
_FILES = frozenset(
    [
        "cfg",
        "css",
        "csv",
        "docx",
        "gif",
        "html",
        "ini",
        "jpeg",
        "jpg",
        "js",
        "json",
        "jsx",
        "log",
        "pdf",
        "png",
        "pptx",
        "rst",
        "tex",
        "toml",
        "txt",
        "webp",
        "xlsx",
        "xml",
        "yaml",
        "yml",
    ]
)
"""Ends of names of files that no host has."""
_OF_ADDRESSES = frozenset({"url", "uri", "href", "link"})
"""Arguments that are an address, however it is written."""
_OF_FILES = frozenset({"path", "paths", "file", "files", "filename", "folder", "directory", "source", "destination"})
"""Arguments that name files: a dot in them makes no host of them."""
DEEPEST = 8
MOST_CHARS = 20_000
"""Longer arguments are not searched: they may hold anything."""


def reaches_outside(reach: Reach, arguments: str, said: Iterable[str], read: Iterable[str]) -> bool:
    """Whether others see anything of a call: `said` are the person's own words, `read` those of others in this turn."""
    match reach:
        case Reach.HERE:
            return False
        case Reach.OUTSIDE:
            return True
        case Reach.ADDRESS:
            if len(arguments) > MOST_CHARS:
                return True
            found = parsed(arguments)
            if isinstance(found, str):
                return False  # it cannot run
            own, theirs = "\n".join(said), "\n".join(read)
            return any(composed(one, own, theirs) for one in addresses_in(found))


def addresses_in(value: Json, depth: int = 0) -> Sequence[str]:
    """What looks like an address, or like a host, in the texts of a value."""
    if depth > DEEPEST:
        return ("://",)
    match value:
        case str():
            return _addresses(value)
        case list():
            return [found for one in value for found in addresses_in(one, depth + 1)]
        case dict():
            found = [each for name in value for each in _addresses(name)]
            for name, one in value.items():
                if name.lower() in _OF_ADDRESSES and isinstance(one, str):
                    found.append(one.strip())
                    continue
                inner = addresses_in(one, depth + 1)
                found += [each for each in inner if "://" in each] if name.lower() in _OF_FILES else inner
            return found
        case _:
            return ()


def _addresses(text: str) -> Sequence[str]:
    """An address takes all that follows it up to a blank; one that is the whole value counts with its blanks."""
    bare = text.strip()
    if _ADDRESS.match(bare):
        return (bare,)
    found = _ADDRESS.findall(text)
    rest = _ADDRESS.sub(" ", text)
    hosts = [one for one in _HOST.findall(rest) if one.rpartition(".")[2].lower() not in _FILES]
    return [*found, *hosts, *_NUMBERS.findall(rest)]


def composed(address: str, said: str, read: str) -> bool:
    """Whether the model made this address itself, so that it may carry what the model knows."""
    bare = address.partition("#")[0]
    if bare in said or bare in read:
        return False
    host = host_of(bare)
    return not host or not named(host, said)


def host_of(address: str) -> str:
    """The host of an address, in small letters; empty if it cannot be read."""
    try:
        parts = urlsplit(address if "://" in address else f"//{address}")
        return "" if parts.username or parts.password else (parts.hostname or "").rstrip(".").lower()
    except ValueError:
        return ""


def named(host: str, said: str) -> bool:
    """Whether a person's words name a host, as a whole."""
    bare = re.escape(host.removeprefix("www."))
    return re.search(rf"(?<![\w.-])(?:www\.)?{bare}(?![\w-]|\.\w)", said, re.IGNORECASE) is not None


def sources_words(sources: Sequence[str]) -> str:
    """Where the words of others stand, for people."""
    named_first = [known_sentence(source) for source in dict.fromkeys(sources)]
    if len(named_first) > 3:
        named_first = [*named_first[:3], speak("{count} more", count=len(named_first) - 3)]
    return ", ".join(named_first)


def why_words(why: AskedWhy, sources: Sequence[str]) -> str:
    """Why somebody is asked, for people; empty if it needs no reason."""
    match why:
        case AskedWhy.ALWAYS:
            said = sentence("The model has read words that are not yours ({sources}).")
            return speak(said, sources=sources_words(sources)) if sources else ""
        case AskedWhy.TAINTED:
            return speak(
                "Others would see this, and the model has read words that are not yours ({sources}).",
                sources=sources_words(sources),
            )
        case AskedWhy.REPEATED:
            return speak("It was begun before, and nobody knows whether it was done: it may happen twice.")


def not_run_words(tool: str, why: AskedWhy, sources: Sequence[str]) -> str:
    """What people read of a call that was not run because nobody could be asked, or because the operator wants it so."""
    if why is AskedWhy.REPEATED:
        return speak(
            "{tool} was not run again: whether it was done before is not known, and nobody can be asked here.",
            tool=tool,
        )
    return speak(
        "{tool} was not run: others would have seen it, and the model has read words that are not yours ({sources}).",
        tool=tool,
        sources=sources_words(sources),
    )
