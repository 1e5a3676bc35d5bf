"""Whether a text that lost its end had one: by its form, and by what the model says when it is asked to go on. Pure.

Theory. A finish reason may be lost, or wrong, behind a text that is whole. Nobody can tell by the text alone; but a model that is asked to go on
and says nothing more has answered the question, as long as the text's own form does not speak against it. A text that ends in the middle of
something (an open code fence, a comma, a paragraph that was begun) was cut, whatever is said of it; of one that merely ends without a mark, a model's
silence is no proof.
"""

from __future__ import annotations

import re
import unicodedata
from enum import StrEnum, auto

from agent_core.rules.promising.done import says_done
from agent_core.text.patterns import late

SIGNAL_CHARS = 160
"""What a model says in place of going on is no longer."""
PREAMBLE_CHARS = 160
"""What a model says beside a call is seldom longer, and in one line."""


class TextForm(StrEnum):
    """How a text ends."""

    CLOSED = auto()
    """As whole texts do."""
    BARE = auto()
    """Without a mark: a list's item, a name, or the middle of a sentence."""
    OPEN = auto()
    """In the middle of something."""


_CLOSING = "\"'”“’»«)]}）】」』*_~"
_ENDS = ".!?…。！？।॥؟۔።։"
_LEADS_ON = ",:;-–—/\\+=&(<[{“„«、，：；،؛"


def form_of(text: str) -> TextForm:
    """How a text ends, as far as its last characters tell."""
    bare = text.rstrip()
    if not bare or bare.count("```") % 2 or text[len(bare) :].strip("\n") or text[len(bare) :].count("\n") > 1:
        return TextForm.OPEN
    if bare.endswith(("```", "$$", "~~~", "|")) or re.search(r"</\w{1,20}>$", bare[-24:]):
        return TextForm.CLOSED
    last = bare[-1]
    if last in _LEADS_ON:
        return TextForm.OPEN
    inner = bare.rstrip(_CLOSING)
    if inner.endswith(tuple(_ENDS)):
        return TextForm.CLOSED
    pictured = unicodedata.category(last) in ("So", "Sk", "Cf", "Mn") and not last.isalpha()
    return TextForm.CLOSED if pictured and ord(last) > 0x2000 else TextForm.BARE


_SIGNAL = late(
    r"(?:done|finished|end|complete|nothing|none|no (?:more|further) (?:text|content|output)|end of (?:the )?(?:reply|response|answer|message|text))",
)
_REPLY = r"(?:reply|response|answer|message|text|output|list|story|code)"
_NOTHING_MORE = late(
    unicodedata.normalize(
        "NFC",
        rf"(?:(?:my|the|that|this|your)(?: previous| last| earlier)? {_REPLY} (?:above )?(?:was|is|had been|has been|ended)(?: in fact| actually)?(?: already| now)? "
        r"(?:complete|completed|finished|whole|done|there)(?: already| as it was| as it is)?"
        r"|(?:there(?:'s| is| was) |i have |i've )?(?:got )?(?:nothing|no more|not anything)(?: more| else| further| left)*(?: text)? (?:left )?to (?:add|say|continue|write)(?: here)?"
        r"|that(?:'s| is| was)(?: already)? (?:all|everything|it|the (?:end|whole|complete|entire)[\w ]{0,20})(?: i had(?: to say)?| there is| there was)?"
        r"|(?:i|we) (?:had|have|'ve|was)?\s?(?:already |just )?(?:finished|completed|done)(?: (?:my|the|that) "
        + _REPLY
        + r")?(?: already)?"
        r"|no continuation (?:is )?(?:needed|necessary)|nothing (?:was|is) (?:missing|cut off|left out)|(?:it|that) was (?:already )?complete"
        r"|(?:meine|die) antwort (?:war|ist) (?:bereits |schon )?(?:vollständig|fertig|abgeschlossen|zu ende)|(?:ich habe )?(?:dem ist )?nichts (?:mehr |weiter )?hinzuzufügen"
        r"|(?:ma|la) réponse (?:était|est) (?:déjà )?(?:complète|terminée)|(?:je n'ai )?rien (?:d'autre )?à ajouter"
        r"|(?:mi|la) respuesta (?:ya )?(?:estaba|está) (?:completa|terminada)|(?:no (?:hay|tengo) )?nada (?:más )?que (?:añadir|agregar)"
        r"|(?:a )?minha resposta (?:já )?(?:estava|está) completa|nada (?:mais )?a acrescentar|(?:non ho )?(?:nient'altro|nulla) da aggiungere"
        r"|(?:мой )?ответ (?:уже )?(?:был )?(?:полон|полный|закончен|завершён|завершен)|(?:мне )?(?:больше )?нечего добавить"
        r"|(?:我的)?(?:回答|回复|回覆)(?:已经|已經|已)?(?:完整|完成|结束|結束)了?|没有(?:更多|其他)?(?:内容|要补充的)了?|(?:これで)?(?:以上|回答は完了)です)",
    )
)
_PARTS = late(r"(?<=[.!;。！])\s+|;\s*|,? and (?=there )|(?<=[。！])")


def says_nothing_more(said: str, before: str) -> bool:
    """Whether a model that was asked to go on from the text `before` says no more than that this was all."""
    if len(said) > SIGNAL_CHARS:
        return False
    plain = said.strip(" \t\r\n*_~`")
    bracketed = plain[:1] in "([{<（【" and plain[-1:] in ")]}>）】"
    word = plain.strip(" \t\r\n*_~`()[]{}<>（）【】.!。！/").lower()
    if (
        plain == plain.upper()
        and not said[:1].isspace()
        and (_SIGNAL.fullmatch(word) or says_done(word))
        and word.isascii()
    ):
        return True
    if bracketed and (_SIGNAL.fullmatch(word) or _says_all(word)):
        return True
    if form_of(before) is not TextForm.CLOSED and sees_nothing(said):
        return True
    goes_on = said[:1].isspace() and " " not in plain  # " Done." is the next sentence; without the blank it is none
    return form_of(before) is TextForm.CLOSED and not goes_on and _says_all(plain)


_REFUSES = (
    "i'm sorry",
    "i am sorry",
    "sorry,",
    "i apologize",
    "i don't see",
    "i do not see",
    "there is nothing",
    "there's nothing",
)
_SEES_NOTHING = late(
    r"(?:(?:i'm|i am) (?:very )?sorry|sorry|i apologize)?[,.]? ?(?:but )?(?:i (?:don't|do not|can't|cannot) (?:see|find|have)|there(?:'s| is)(?: not|n't)?)"
    r" (?:anything|nothing|any (?:text|message|content|reply)|what|a (?:text|message|reply))(?: here)?(?: for me)? to (?:continue|go on)(?: from| with)?[.!]?"
)


def _begins(said: str, words: str) -> bool:
    return bool(said) and (said.startswith(words) or words.startswith(said))


def sees_nothing(said: str) -> bool:
    """A model that was asked to go on says that it does not see from what."""
    return _SEES_NOTHING.fullmatch(said.lower().replace("’", "'").strip()) is not None


def may_say_nothing_more(said: str, before: str) -> bool:
    """Whether `said`, which still grows, may come to that: it is not shown yet."""
    if len(said) > SIGNAL_CHARS:
        return False
    plain = said.strip(" \t\r\n*_~`")
    if form_of(before) is not TextForm.CLOSED and any(_begins(plain.lower(), one) for one in _REFUSES):
        return True
    return form_of(before) is TextForm.CLOSED or (plain.isascii() and plain == plain.upper()) or plain[:1] in "([{<（【"


def _says_all(said: str) -> bool:
    plain = unicodedata.normalize("NFC", said.lower().replace("’", "'"))
    parts = [part.strip(" \t\r\n*_~`\"'.!。！;,") for part in _PARTS.split(plain)]
    parts = [part for part in parts if part]
    return bool(parts) and all(says_done(part) or _NOTHING_MORE.fullmatch(part) for part in parts)


def is_preamble(text: str) -> bool:
    """Whether a text may be what is said beside a call."""
    plain = text.strip()
    return len(plain) <= PREAMBLE_CHARS and "\n" not in plain
