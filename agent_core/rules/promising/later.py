"""What is promised for later: a reminder, word when something is done. A turn that is over wakes nobody, so only a tool can keep it."""

from __future__ import annotations

import re
import unicodedata

LATER = re.compile(
    unicodedata.normalize(
        "NFC",
        (
            r"schreib|escrib|scriv|escrev|schrijf|écri[st]|écrirai|avertir|avviser|zawiadom|avisar|napisz|napíš|írok|skriver|"
            r"kirjoitan|meddel|пиш|γράψ|אכתוב|כתוב|می.?نویس|لکھ|लिख|লিখ|nhắn|andiki|yaz|سأكتب|reviens|revin|vuelvo|retorno|torno|"
            r"kommer tillbaka|vender tilbage|kommer tilbake|palaan|visszatér|jelentkez|返事|報告|再联系|回覆|remind|ping you|let you know|"
            r"get back|check back|come back|write (?:to )?you|message you|mail you|tell you|notify|keep you|erinner|bescheid|melde|"
            r"rappel|préviens|préviendrai|record|avis|lembr|ricord|herinner|weten|przypom|znać|напом|сообщ|нагад|повідом|съобщ|påmin|"
            r"minder dig|minner deg|besked|beskjed|säger till|hör av mig|muistut|ilmoit|připom|vědět|pripom|vedieť|emlékez|szólok|"
            r"értesít|amint|anunț|θυμί|ενημερώ|hatırlat|haber ver|ذكر|أخبر|זכיר|עדכן|یادآور|خبر|याद|बता|মনে করি|জানাব|یاد|بتا|ingat|"
            r"kabar|nhắc|báo|เตือน|แจ้ง|お知らせ|ご連絡|リマインド|알려|연락|提醒|通知|告诉|告訴|kumbush|julisha"
        ),
    )
)
"""The stems of remind, let know, write, call and come back, in all the languages; searched where an act has been found."""

IS_SET = re.compile(
    unicodedata.normalize(
        "NFC",
        (
            r"reminder (?:is|has been|was) (?:set|created|scheduled)|set (?:up )?(?:a|the|your) reminder|erinnerung (?:ist |wurde )?(?:gesetzt|gestellt|eingerichtet|angelegt)"
            r"|rappel (?:est |a été )?(?:programmé|créé|réglé)|recordatorio (?:está |ha sido |fue )?(?:programado|creado|configurado)"
            r"|lembrete (?:está |foi )?(?:criado|definido|programado)|promemoria (?:è |è stato )?(?:impostato|creato)|herinnering (?:is |staat )?(?:ingesteld|gezet)"
            r"|przypomnienie (?:jest |zostało )?ustawione|напоминание (?:уже )?(?:установлено|создано|поставлено)|нагадування (?:вже )?(?:встановлено|створено)"
            r"|提醒(?:已|已经|已經)(?:设置|设定|設定|設置)|リマインダーを設定しました|알림을 설정했"
        ),
    )
)
"""Says that the reminder is set already."""

_TOOL = re.compile(r"remind|schedul|alarm|timer|calendar|cron|event|notif|task|todo|appointment|later", re.IGNORECASE)


def keeps_time(tool: str) -> bool:
    """A tool by which something can happen later: with it a reminder that is promised is set."""
    return _TOOL.search(tool) is not None
