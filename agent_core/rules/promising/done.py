"""Whether a model says that it is done: by itself, then what it had said before is the answer; or when it is asked. Pure."""

from __future__ import annotations

import re
import unicodedata

FEW_CHARS = 60
"""Of more characters than these it says something of its own."""

DOUBTED_CHARS = 1_500
"""Of a doubtful reply the model is shown its end."""
_DONE = re.compile(
    unicodedata.normalize(
        "NFC",
        r"(?:(?:yes|ok|okay|ja|oui|sí|sim|sì|да|はい|네|是的?)[,.، 。，]*)?(?:(?:i'm |i am |it's |it is )?(?:all )?(?:done|finished|complete|completed)"
        r"|that(?:'s| is| was| will be) (?:all|it|everything)|(?:there(?:'s| is) )?nothing (?:else|more|left)(?: to do| to add| is left)?"
        r"|no (?:further|more) (?:action|steps|work)(?: (?:is |are )?(?:needed|required|left))?"
        r"|(?:es ist )?(?:alles )?(?:fertig|erledigt)|das (?:war|ist) alles|c'est (?:tout|fait|terminé|fini)|terminé|eso es todo|listo|hecho|terminado"
        r"|è tutto|fatto|finito|é tudo|isso é tudo|pronto|feito|(?:ik ben )?klaar|dat (?:was|is) alles|gotowe|to wszystko|klart|det var allt|färdig|færdig"
        r"|ferdig|det var alt|valmis|siinä kaikki|hotovo|to je (?:vše|všechno|všetko)|kész|ennyi volt|ennyi|gata|asta e tot|готово|это вс[её]|це вс[еі]"
        r"|това е всичко|έτοιμο|αυτό ήταν(?: όλο)?|bitti|hepsi bu|bu kadar|tamam|تم|هذا كل شيء|انتهيت|סיימתי|זה הכול|זה הכל|انجام شد|همین بود|تمام شد"
        r"|हो गया|बस इतना ही|ہو گیا|بس اتنا ہی|শেষ|হয়ে গেছে|selesai|itu saja|xong(?: rồi)?|hết rồi|เสร็จ(?:แล้ว|เรียบร้อย)(?:ครับ|ค่ะ)?|以上です"
        r"|完了(?:しました|です)|終わり(?:ました|です)|끝났습니다|완료(?:했습니다|되었습니다)|이상입니다|(?:已|都)?完成了?|就这些了?|就這些了?|没有了|沒有了"
        r"|nimemaliza|imekamilika|ni hayo tu)",
    )
)


def says_done(text: str) -> bool:
    """Whether this is all that it says."""
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
