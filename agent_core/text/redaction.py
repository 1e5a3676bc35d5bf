"""What must not be read is not written: secrets are taken out of texts and of nested values.

Theory. There are two kinds of knowledge. *Known* secrets (the keys that the configuration holds) are found wherever they
stand, also percent-encoded, base64-encoded at any alignment (so a ``Basic`` header is found too), in hexadecimal and JSON-escaped; those that are
long enough also in pieces and in other spellings (`alterations`). *Shapes*
(``sk-…``, ``Bearer …``, ``password=…``, ``user:pass@host``) are found by one compiled pattern; they catch the secrets of
others, such as a key that a provider repeats in its error text.

Known secrets go first, then shapes, then known secrets again until nothing changes, because two harmless pieces may join
around the mask. That loop ends: a known form or piece has at least six characters, the mask has three, so the text gets shorter.

Laws (tests/agent_core/test_redaction.py): whatever text a known secret is put into, the result does not contain it;
redacting twice is redacting once; nothing raises; the time grows linearly with the text.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable
from functools import lru_cache
from urllib.parse import quote, quote_plus

from agent_core.records import dataclass
from agent_core.text.alterations import SHORTEST_ALTERED, Alterations, squeezed
from agent_core.text.patterns import late

MASK = "***"
"""What stands in the place of a secret. Shorter than the shortest known secret: the loop's end rests on that."""

NOTHING_ALTERED = Alterations()

SHORTEST_SECRET = 6
"""Characters. Shorter values would be found inside ordinary words, and a mask there misleads more than it protects."""

_SECRET_NAME = late(
    r"(?:api[_-]?key|access[_-]?key|private[_-]?key|authorization|password|passwd|passphrase|secret|cookie|credential)s?\Z"
    r"|token\Z",  # not "tokens": those are counted, not kept secret
    re.IGNORECASE,
)

_SHAPES = late(
    r"""
    # Tokens that can be told by their form alone.
      \b(?:sk|pk|rk|gsk|xai|hf|pplx|glpat|r8|nvapi|xapp|xox[abeoprs])[-_][\w*.-]{8,}
    | \bgh[opsur]_\w{20,}
    | \bgithub_pat_\w{20,}
    | \bAIza[\w-]{30,}
    | \bAKIA[0-9A-Z]{16}\b
    | \b[A-Za-z0-9_-]{23,30}\.[A-Za-z0-9_-]{6,7}\.[A-Za-z0-9_-]{27,50}\b   # Discord
    | (?<![0-9])[0-9]{6,12}:[A-Za-z0-9_-]{30,}                                     # Telegram
    | -----BEGIN\ [A-Z ]{0,40}PRIVATE\ KEY-----[^-]{0,20000}(?:-----END\ [A-Z ]{0,40}PRIVATE\ KEY-----)?
    # What follows a telling name; the name stays.
    | (?P<scheme> \b(?:bearer|basic) \s{1,8} ) (?: [\w.~+/=*-]{20,} | (?=[a-z.~+/=*_-]{0,20}[0-9]) [\w.~+/=*-]{8,} )
    | (?P<header> cookie["']? \s{0,4} : \s{0,4} ) [^\r\n]+
    | (?P<login> :// [^\s/:@]{0,256} : ) [^\s/]{1,256} (?=@)
    | (?P<query> [?&](?:key|sig|signature|auth|code) = ) [^&\s"'\#]{6,}
    | (?P<hidden> (?:password|passwd|passphrase|pwd)["']? \s{0,4} [=:] \s{0,4} ["']? )
        (?: (?<=") [^"\r\n]{1,512} | (?<=') [^'\r\n]{1,512} | [^\s"'&,;]+ )
    | (?P<named> (?:api[_-]?key|access[_-]?key|secret|token|authorization|key\ provided)["']? \s{0,4} [=:] \s{0,4} ["']?
        (?:(?:bearer|basic|token|bot)\s{1,8})? ) (?!(?:bearer|basic|token|bot)\s)
        (?: (?<=") [^"\r\n]{6,512} | (?<=') [^'\r\n]{6,512} | [^\s"'&,;)}\]]{6,} )
    """,
    re.VERBOSE | re.IGNORECASE,
)

_WEB_TOKEN_RUN = late(r"[\w.-]{20,}")
_WEB_TOKEN_START = late(r"\beyJ[\w-]{8}")
"""A JSON web token is found part by part in one run of its characters: a pattern for all of it tries each beginning anew, to the end."""

_TRIGGERS = (
    *(
        "sk-",
        "pk-",
        "rk-",
        "sk_",
        "pk_",
        "rk_",
        "gsk",
        "xai",
        "hf_",
        "hf-",
        "pplx",
        "glpat",
        "r8_",
        "r8-",
        "nvapi",
        "xapp",
        "xox",
    ),
    *("ghp_", "gho_", "ghs_", "ghr_", "ghu_", "github_pat_", "aiza", "akia", "eyj", "private key"),
    *(
        "bearer",
        "basic",
        "cookie",
        "://",
        "key",
        "sig",
        "auth",
        "code=",
        "passw",
        "passphrase",
        "pwd",
        "secret",
        "token",
    ),
)
"""In lower case; each shape that is not just a long run of characters holds one of these."""

_WORDS = (
    *("sk_", "pk_", "rk_", "gsk_", "xai_", "hf_", "pplx_", "glpat_", "r8_", "nvapi_", "xapp_", "xox"),
    *("ghp_", "gho_", "ghs_", "ghr_", "ghu_", "github_pat_", "aiza", "akia"),
)
"""In lower case; a shape that is one word begins with one of these. Nearly all that a log names are words, each by an id of its own."""

_SHORTEST_RUN = 37
"""Characters without white space that the shapes without a trigger (Telegram, Discord) need at least."""


def _may_hold_a_shape(text: str) -> bool:
    """A cheap test before the dear one: some 2 µs for a log line, where the pattern takes 80 (measured with 150 characters)."""
    low = text.lower()
    if text.isidentifier() and text.isascii():  # one word: no shape begins in its middle
        return low.startswith(_WORDS)
    for trigger in _TRIGGERS:
        if trigger in low:
            return True
    return len(text) >= _SHORTEST_RUN and any(len(word) >= _SHORTEST_RUN for word in text.split())


def _mask_shape(found: re.Match[str]) -> str:
    name = found.lastgroup
    return MASK if name is None else f"{found.group(name)}{MASK}"


def _without_web_tokens(run: re.Match[str]) -> str:
    """A run of characters without a JSON web token: a part that begins like one, one behind it, and whatever stands behind a third dot."""
    parts = run[0].split(".")
    for number, part in enumerate(parts[:-2]):
        start = _WEB_TOKEN_START.search(part)
        if start is not None and len(parts[number + 1]) >= 8:
            kept = [*parts[:number], f"{part[: start.start()]}{MASK}"]
            return ".".join([*kept, *parts[number + 3 :]])
    return run[0]


@lru_cache(1024)
def is_secret_name(name: str) -> bool:
    """True if what is kept under this name is a secret: ``Authorization``, ``x-api-key``, ``bot_token``; not ``max_tokens``."""
    return _SECRET_NAME.search(name) is not None


def _base64_cores(raw: bytes) -> Iterable[str]:
    """The characters that every base64 text must hold in which `raw` stands, at each of the three alignments."""
    for before in range(3):
        # The first characters mix with what stands before, the last one with what follows: both are left away.
        first = (0, 2, 3)[before]
        whole = (before + len(raw)) * 8 // 6
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            yield encode(b"\0" * before + raw).decode("ascii")[first:whole]


def _forms(secret: str) -> Iterable[str]:
    """The spellings under which a secret may turn up."""
    raw = secret.encode("utf-8", "surrogatepass")
    yield secret
    for quoted in (quote(raw, safe=""), quote(raw), quote_plus(raw)):
        yield quoted
        yield re.sub(r"%[0-9A-F]{2}", lambda found: found.group().lower(), quoted)
    if len(squeezed(secret)) < SHORTEST_ALTERED:
        yield from (secret.lower(), secret.upper(), secret.swapcase(), secret[::-1], raw.hex(), raw.hex().upper())
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    yield repr(secret)[1:-1]
    yield from _base64_cores(raw)


@dataclass(frozen=True, slots=True)
class Redactor:
    """Takes secrets out of what is logged, shown or handed on. Immutable; make a new one when a secret is added."""

    _known: tuple[str, ...] = ()
    _altered: Alterations = NOTHING_ALTERED

    @classmethod
    def of(cls, secrets: Iterable[str]) -> Redactor:
        """A redactor that knows these secrets. Those shorter than `SHORTEST_SECRET` characters are left to the shapes."""
        whole = [*secrets]
        forms = {
            form
            for secret in whole
            if len(secret.strip()) >= SHORTEST_SECRET
            for form in (*_forms(secret), secret.strip())
            if len(form) >= SHORTEST_SECRET
        }
        # Longest first: a secret that is part of another one must not leave the other's rest behind.
        return cls(tuple(sorted(forms, key=lambda form: (-len(form), form))), Alterations.of(whole))

    def __repr__(self) -> str:
        return f"Redactor({len(self._known)} known forms)"

    def redact(self, text: str) -> str:
        """`text` without secrets, each replaced by `MASK`. Never raises."""
        text = self._without_known(text)
        if _may_hold_a_shape(text):
            before = text
            if "eyj" in text.lower():
                text = _WEB_TOKEN_RUN.sub(_without_web_tokens, text)
            shaped = _SHAPES.sub(_mask_shape, text)
            if shaped != before:
                return self._without_known(shaped)
        return text

    def hide(self, text: str) -> str:
        """`text` without known secrets, and otherwise as it is: for what has to stay exact, such as a file that somebody reads. Short ones stay:
        they stand in ordinary words as well."""
        for form in self._known:
            if len(form) >= SHORTEST_ALTERED and form in text:
                text = text.replace(form, MASK)
        return text

    def _without_known(self, text: str) -> str:
        # `in` and `replace` on literals are memchr-fast; one alternation of all forms was some 30 times slower.
        before = None
        while before != text:
            before = text
            for form in self._known:
                if form in text:
                    text = text.replace(form, MASK)
            text = self._altered.without(text, MASK)
        return text
