"""Finds a reply that announces an action of its own and stops. Pure, without a model call.

Only the last sentence counts, within the last 400 characters. It is an announcement if it speaks of the model's own next
action in one of the languages below, or names one with "now …" and a colon at the end. Questions, offers, courtesies, reports of what
is done, and anything that is followed by content are none.
"""

from __future__ import annotations

import re

LOOK_BACK_CHARS = 400

_ACTS = (
    r"(?:check|look|read|open|run|start|creat|writ|updat|edit|fix|search|fetch|call|execut|dispatch|generat|analy[sz]|install|build|"
    r"test|review|inspect|examin|list|find|add|remov|delet|implement|continu|proceed|verif|load|download|query|gather|begin|try|"
    r"investigat|explor|mak|put|send|process|apply|set up|configur|deploy|scan|prepar|retriev|get|do|work|pull|draft|launch|save|mov|copy)"
)
_ANNOUNCEMENTS: tuple[re.Pattern[str], ...] = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        # English
        rf"^(?:ok(?:ay)?|sure|alright|great|perfect|good|got it|right|now|next|first|then|so|and|finally)?[,.!]?\s*"
        rf"(?:now |next,? |first,? |then,? )?(?:let me|let's|i(?:'|’)?ll|i will|i(?:'|’)?m going to|i am going to|i(?:'|’)?m about to|"
        rf"i(?:'|’)?ll now|i will now|i need to|time to)\s+(?:(?:now|first|next|just|quickly|also|go ahead and|start by|begin by|"
        rf"continue|then)\s+)*{_ACTS}",
        rf"^(?:now|next|first|step \d+)[,:]?\s+(?:i(?:'|’)?m\s+)?{_ACTS}\w*ing\b",
        rf"^{_ACTS}\w*ing\b[^.?!]*(?:now|…|\.\.\.|:)\W*$",
        # German
        r"\b(?:ich (?:werde|schaue|prüfe|lese|öffne|starte|erstelle|schreibe|führe|suche|rufe|lade|teste|aktualisiere|mache|beginne|sehe)|"
        r"lass mich|jetzt (?:werde|schaue|prüfe|lese|starte|erstelle|schreibe|führe|suche|rufe) ich|als nächstes|nun (?:werde|prüfe|schreibe|lese|starte) ich)\b",
        # Spanish, Portuguese
        r"\b(?:voy a|vamos a|déjame|dejame|ahora (?:voy|reviso|creo|escribo|ejecuto|busco|leo)|procedo a|a continuación,? (?:voy|reviso|creo))\b",
        r"\b(?:vou|deixe-me|deixa-me|agora vou|a seguir,? vou|irei)\s+\w+",
        # French
        r"\b(?:je vais|laissez-moi|laisse-moi|maintenant,? je|je m'apprête à|je lance|je vérifie|je commence)\b",
        # Italian
        r"\b(?:ora (?:controllo|leggo|scrivo|creo|eseguo|cerco|apro|verifico)|adesso \w+o\b|fammi|lasciami|sto per|procedo (?:a|con)|vado a)\b",
        # Dutch
        r"\b(?:ik (?:ga|zal|kijk|lees|schrijf|start|controleer|zoek|maak)|laat me|laat mij|nu ga ik)\b",
        # Polish
        r"\b(?:teraz (?:sprawdzę|sprawdzam|uruchomię|napiszę|utworzę|przeczytam|otworzę|zrobię)|zaraz \w+ę|sprawdzę|uruchomię|pozwól,? że|zamierzam)\b",
        # Russian
        r"(?:сейчас (?:я )?(?:проверю|посмотрю|прочитаю|запущу|создам|напишу|открою|найду|сделаю)|давайте? (?:я )?(?:проверю|посмотрю)|я (?:проверю|посмотрю|запущу|создам|напишу|прочитаю)|теперь (?:я )?(?:проверю|посмотрю|запущу|создам|напишу|прочитаю))",
        # Chinese, Japanese
        r"(?:让我|我来|我将|我会|我现在|现在我|接下来我|我先|我要)(?:先|去|来|再|就|马上)?(?:检查|查看|看|读取|读|写|创建|运行|执行|搜索|打开|更新|开始|生成|查找|处理|调用)",
        r"(?:(?:今から|これから|まず|次に|では、?).{0,30}(?:ます|しましょう)|(?:確認|実行|作成|検索|調査|更新|開始|書き込み|読み込み)(?:してみます|します|いたします))",
    )
)
_NOT_ANNOUNCED: tuple[re.Pattern[str], ...] = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"[?？]\W*$",
        r"\b(?:let me know|let's talk|i(?:'|’)?ll be (?:here|happy|glad|ready)|i will be (?:here|happy|glad)|if you|once you|when you|after you|unless|whenever|would you|should i|shall i|want me to|happy to|feel free)\b",
        r"\b(?:i(?:'|’)?ve|i have|i had|already|done|finished|completed)\b",
        r"\b(?:melde dich|sag bescheid|wenn du|falls du|wenn sie|falls sie|gerne|soll ich|sobald du|sobald sie)\b",
        r"\b(?:si quieres|si necesitas|avísame|si lo deseas|cuando quieras|se quiser|se precisar|me avise|si vous|si tu|n'hésitez|dites-moi|se vuoi|se hai|fammi sapere|als je|als u|laat het|laat me weten|laat mij weten|jeśli|daj znać|если|дайте знать|dime)\b",
        r"(?:如果|告诉我|请告诉|需要的话|吗|もし|ください|でしょうか|必要でしたら|お知らせ)",
        r"\bi (?:will|'ll|’ll) (?:not|never|remember|keep)\b",
    )
)
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])[\s]+|\n+|(?<=[。！？])")


def announced_action(text: str) -> str | None:
    """The announcing sentence at the end of `text`, or None."""
    tail = text[-LOOK_BACK_CHARS:].rstrip()
    if not tail or tail.endswith(("```", "|", "</code>")):
        return None
    sentences = [part.strip() for part in _SENTENCE_END.split(tail) if part and part.strip()]
    if not sentences:
        return None
    last = sentences[-1].lstrip("-*•#> 0123456789.)").strip("*_` ")
    if not last or len(last) > 300 or text.count("```") % 2:
        return None
    if re.match(r"^\s*(?:[-*•|]|\d+[.)])\s", sentences[-1]):
        return None
    if any(pattern.search(last) for pattern in _NOT_ANNOUNCED):
        return None
    return last if any(pattern.search(last) for pattern in _ANNOUNCEMENTS) else None
