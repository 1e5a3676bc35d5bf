"""Work that is said to go on by itself: in the background, in a queue, by somebody else. A turn that is over does nothing, so without a tool it is not so."""

from __future__ import annotations

import re
import unicodedata


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile(unicodedata.normalize("NFC", "|".join(patterns)))


_HIDDEN = _any(
    r"in the background|\bbackground (?:job|task|process|worker)|im hintergrund|en arrière-plan|en segundo plano|em (?:segundo )?plano|in background|"
    r"in sottofondo|op de achtergrond|w tle|в фоновом режиме|в фоне|у фоновому режимі|у фоні|във фонов режим|i bakgrunden|i baggrunden|i bakgrunnen|"
    r"taustalla|na pozadí|a háttérben|în fundal|στο παρασκήνιο|arka planda|في الخلفية|ברקע|در پس.?زمینه|पृष्ठभूमि में|बैकग्राउंड में|پس منظر میں|ব্যাকগ্রাউন্ডে|"
    r"di latar belakang|chạy ngầm|trong nền|ở chế độ nền|ในเบื้องหลัง|バックグラウンド|백그라운드|后台|後台|背景(?:执行|執行|运行|運行)|chinichini|nyuma ya pazia"
)
"""In the background, in all the languages."""
_BEGUN = _any(
    r"\b(?:i've|i have|we've|i) (?:just |now |already )?(?:started|begun|kicked off|launched|initiated|queued|scheduled|delegated|triggered|submitted|dispatched|set off|handed)",
    r"\b(?:has|have|is|are|was) (?:now |just |already |been )*(?:started|begun|queued|scheduled|kicked off|launched|initiated|submitted|delegated|underway)",
    r"gestartet|angestoßen|begonnen|eingereiht|übergeben|lancé|démarré|iniciad|lanzad|puesto en cola|iniciei|comecei|avviat|lanciat|gestart|begonnen|ingepland|"
    r"uruchom|rozpocz|zapustil|запустил|запущен|начал|поставлен|запустив|розпоча|стартира|започна|startat|påbörja|sat i gang|startet|igangsat|käynnist|aloit|"
    r"spustil|spuštěn|zahájil|spustený|elindított|elkezdt|pornit|început|lansat|ξεκίνησ|başlat|بدأت|بدء|התחלתי|הפעלתי|شروع کرد|शुरू|شروع کر|শুরু|memulai|dimulai|mulai|"
    r"bắt đầu|khởi chạy|เริ่ม|開始し|開始致|実行し|시작했|실행했|开始|開始|啟動|启动|提交|开启|開啟|nimeanza",
)
"""It has been started, in all the languages."""
_JOB = _any(
    r"\b(?:task|job|request|report|download|upload|analysis|export|import|build|migration|conversion|backup|scan|generation|process|query|order|file|document|"
    r"results?|summary|data)\b|aufgabe|anfrage|bericht|auftrag|analyse|export|datei|tâche|demande|rapport|téléchargement|fichier|tarea|solicitud|informe|descarga|archivo|"
    r"tarefa|pedido|relatório|arquivo|attività|richiesta|rapporto|relazione|taak|verzoek|rapport|bestand|zadani|raport|plik|задач|запрос|отч[её]т|файл|завдан|звіт|"
    r"uppgift|opgave|oppgave|úkol|zpráv|feladat|jelentés|sarcin|cerere|εργασία|αναφορά|görev|rapor|istek|مهم|تقرير|טلب|משימ|דוח|گزارش|कार्य|रिपोर्ट|کام|রিপোর্ট|tugas|laporan|"
    r"nhiệm vụ|báo cáo|งาน|รายงาน|タスク|レポート|報告|작업|보고서|任务|任務|报告|请求|請求"
)
_GOING = _any(
    r"\b(?:is|are) (?:now |just |currently )?being (?:processed|generated|created|prepared|(?:down|up)loaded|compiled|built|analy[sz]ed|executed|handled|worked on|written|exported|imported|converted|run|drafted|migrated)\b|\b(?:is|are) (?:now |currently |already )?(?:in progress|under ?way|running|processing|in the queue|queued)\b|"
    r"\bwird (?:gerade|jetzt|nun|aktuell|derzeit)\b|\bläuft\b|in bearbeitung|en cours|se está \w+ndo|está (?:sendo|em andamento|en curso|en proceso)|in corso|wordt (?:nu|momenteel)|"
    r"in behandeling|jest (?:właśnie|teraz)|w trakcie|обрабатыва|выполня|генериру|создаётся|создается|загружа|обробля|виконує|håller på|bearbetas|behandles|er i gang|är igång|"
    r"käsitell|työn alla|se právě|probíhá|prebieha|folyamatban|este în curs|în curs|βρίσκεται σε εξέλιξη|hazırlanıyor|işleniyor|devam ediyor|جار[يٍ]?|قيد|بתהליך|בתהליך|בעיבוד|در حال|"
    r"चल रहा|तैयार (?:की|किया) जा|تیار (?:کی|کیا) جا|চলছে|sedang|đang (?:được|chạy|xử)|กำลัง|処理中|作成中|実行中|しています|처리 중|진행 중|생성 중|正在|处理中|處理中|进行中|進行中|inaendelea"
)
"""It is being done, in all the languages."""
_COMES = _any(
    r"\byou(?:'ll| will) (?:get|receive|have|see|be (?:notified|informed|told|updated|alerted)|hear)\b.*\b(?:when|once|as soon as|moment|minute|minutes|shortly|soon|here|done|finished|ready)\b|"
    r"\b(?:results?|answer|reply|output|it|they)(?: \w+)? (?:will|'ll|is going to|are going to)? ?(?:report back|appear here|arrive here|show up here|be posted here|come(?:s)? in here|coming (?:right )?up)\b|"
    r"\bcheck back (?:in|soon|later|shortly|here)\b|\bresults? coming (?:right )?up\b|\b(?:will|should) be (?:ready|done|finished|completed?|available) (?:in|within|shortly|soon)\b|"
    r"(?:du bekommst|sie bekommen|sie erhalten|du erhältst) .*\b(?:sobald|gleich|in kürze)|vous (?:recevrez|serez averti)|recibirás|le llegará|você (?:receberá|será avisado)|riceverai|"
    r"je krijgt .*zodra|otrzymasz|вы получите|ви отримаєте|du får .*(?:när|så snart|snart)|完成后会|完成後會|稍后会|稍後會|完了(?:次第|したら|後)|완료되면|끝나면"
)
"""Something of it comes later by itself."""
_BUSY = re.compile(
    r"^\W*(?:working|processing|loading|thinking|executing|running|generating|fetching|searching|analy[sz]ing|downloading|uploading|compiling|preparing|calculating|"
    r"wird (?:geladen|verarbeitet|bearbeitet)|lade|verarbeite|traitement en cours|chargement|procesando|cargando|processando|carregando|elaborazione(?: in corso)?|"
    r"обработка|загрузка|处理中|處理中|加载中|生成中|処理中|読み込み中|처리 중|로딩 중)\b[^.!?\n]{0,60}(?:…|\.\.\.)\W*(?:(?:please |just )?(?:wait|hold on|stand by|a moment|one moment|bitte warten|einen moment)\b\W*)?$"
)
"""A word that a program shows while it works."""


def begun_in_background(plain: str) -> bool:
    return _HIDDEN.search(plain) is not None and _BEGUN.search(plain) is not None


def is_under_way(plain: str, before: str, *, announced: bool) -> bool:
    """Whether a sentence (small letters; `before` is the one before it, which may have `announced` something) says that work goes on by itself."""
    if _BUSY.search(plain):
        return True
    if _HIDDEN.search(plain):
        return bool(_BEGUN.search(plain) or (_JOB.search(plain) and _GOING.search(plain)))
    begun = any(_BEGUN.search(one) and _JOB.search(one) for one in (plain, before))
    if _COMES.search(plain):
        return (
            announced
            or begun
            or bool(_BEGUN.search(plain) or _BEGUN.search(before) or (_JOB.search(before) and _GOING.search(before)))
        )
    if begun and re.search(r"\bwill be \w+ed (?:in|within)\b|\bqueued\b", plain):
        return True
    return _STARTS.match(plain) is not None and any(
        _TAIL.fullmatch(plain, found.end()) for found in _GOING.finditer(plain)
    )


_TAIL = re.compile(r"(?:\W++\w++)?\W*+(?:(?:please|just|bitte|einen|one|a|un|por|s'il) [^.!?]{0,30}+)?\W*+")
"""What may still come behind that: that anything comes of it is said nowhere."""


_STARTS = re.compile(
    r"\W*+(?:ok(?:ay)?|sure|alles klar|gut)?\W*+(?:(?:your|the|this|dein|deine|ihr|ihre|der|die|das|votre|ta|la|le|el|tu|su|a|o|sua|il|ваш|твой|de|je|uw)\W++)?"
    r"(?:\w++\W++)?" + f"(?:{_JOB.pattern})"
)
