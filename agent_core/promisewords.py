"""The words by which models announce an act, one row a language. Data of `promises`, which says what is done with it.

A pattern is searched in one sentence, in lower case, with plain apostrophes and without emphasis. An announcement is found by one of `announcing`,
unless one of `otherwise` is there as well. The verbs are those of an agent's work; verbs of talking (explain, sum up, remember) are left out,
because a sentence with them does what it says. Endings stand for verbs where the language allows it (Turkish, Hindi, Korean, Japanese, the
Romance infinitives).

To add a language: a row, endings in tests/corpora/endings_development.txt, and some written beforehand in endings_held_out.txt.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Language:
    """One language's words."""

    code: str
    announcing: tuple[str, ...]
    otherwise: tuple[str, ...]
    requests: str
    """Words by which the sentence before asks the person for something: then the next action waits for them."""
    patience: str
    """A sentence that only asks to wait. It announces something by itself."""


def _words(text: str) -> str:
    """A pattern for any one of the words, each of which may be a pattern; a tilde stands for a space in one."""
    return f"(?:{'|'.join(text.split())})".replace("~", " ")


_DOTS = r"(?:…|\.\.\.)$"

_EN_DO = _words(
    "check look take~an?~(?:\\w+~)?look have~a~look read open run re-?run execute search find fetch get pull grab start begin "
    "proceed continue go~ahead create write update edit fix apply add remove delete install test verify validate confirm inspect "
    "examine review analy[sz]e investigate explore scan list query call invoke dispatch send build compile deploy download upload "
    "load parse process generate make implement refactor try retry set~up configure move~on rename copy commit push clone dig "
    "gather collect compare calculate compute prepare draft convert extract restart launch schedule switch work handle "
    "double-?check figure~out locate save store merge patch debug trace measure visit browse navigate do~(?:that|this|it|so) "
    "see~(?:what|if|whether|how|which|why)(?:'s)? get~started kick~off spin~up spawn delegate translate rewrite put~together retrieve trigger "
    "submit tackle correct adjust modify replace clean~up take~care use push pull~request add translate look~for rename back~up redo "
    "book reserve forward merge monitor watch ask~the hand~(?:it|this|that|over) pass~(?:it|this)~(?:on|to) resend request reload refresh "
    "upgrade publish archive extend shorten summari[sz]e~the count sort filter format draw render benchmark profile grep bump sync import "
    "export reproduce isolate narrow broaden enable disable adapt assemble complete finish solve resolve diagnose research study order "
    "schedule cancel track crop resize transcribe think~about put~the go~(?:over|through|back) get~(?:right~)?(?:on|to)~(?:it|that|work) "
    "split group transfer migrate reset roll~back return~to have~(?:the|another) (?:re)?calculate note~down~the patch check~in~with"
)
_EN_DOING = _words(
    "checking looking~(?:into|at|up|for|through) reading opening running re-?running executing searching fetching getting pulling "
    "grabbing starting beginning proceeding continuing creating writing updating editing fixing applying adding removing deleting "
    "installing testing verifying validating inspecting examining reviewing analy[sz]ing investigating exploring scanning listing "
    "querying calling invoking dispatching sending building compiling deploying downloading uploading loading parsing processing "
    "generating making implementing refactoring trying retrying setting~up configuring moving~(?:on|to) working~on gathering "
    "collecting comparing calculating preparing drafting converting extracting restarting launching switching delegating "
    "kicking~off spawning retrieving submitting handling tackling saving "
    "booking deleting handing~(?:it|this|that|over) uploading resending requesting translating removing merging pushing pulling switching "
    "drafting converting rendering broadening narrowing forwarding renaming correcting rewriting redoing reserving scheduling cancelling "
    "compiling cleaning copying moving replacing patching bumping syncing exporting importing passing~(?:it|this) taking~(?:a|another) "
    "preparing transcribing sorting filtering counting finishing assembling packing polling digging double-?checking rerunning"
)
_EN_LEAD = (  # every way through it is decided by its first word: no search among many
    r"^(?:(?:(?:ok|okay|sure|great|good|perfect|right|alright|all right|understood|got it|thanks|yes|and|so|now|next|first|then|"
    r"finally|one moment|hold on|meanwhile|sounds good|of course|certainly|absolutely|no problem|thank you)(?: please)?[\s,.!:–—-]|"
    r"(?:to|for|based on|given|since|as|after|with) [^,.?!]{1,80}+,)[\s,.!:–—-]*+){0,5}"
)
_EN_HOW = r"(?:(?:now|first|next|just|quickly|also|then|start by|begin by|immediately|go ahead and|try to) )*"
_EN_I_WILL = r"i(?:'ll| will|'m going to| am going to|'m gonna|'m about to| am about to)"
_EN_NOT_WILL = _words(
    "be been keep make~sure leave~(?:it|the|that) let need always never not happily gladly assume take~(?:that|this|it)~as explain remember "
    "say admit note~that refer~to call~(?:it|this) stick stay stop tell show give walk have~(?:to|no) know miss do~my help assist mention add~that "
    "spare trust bet skip answer wait respect follow~your avoid treat use~the~term summari[sz]e elaborate stand assume mean want like love find~it "
    "see~you talk speak focus~on~the~(?:main|key) outline describe argue concede repeat warn notify remind only gladly see~to~it leave "
    "defer believe consider~this update~this~answer happily come~back~to~that accept respond cover go~with list~them begin~with~the~short"
)
"""What follows "I'll" without being an act: then the sentence says, or asks, or waits."""
_EN_NOT_LET = _words(
    "know explain be put say clarify recap tell give show point~out answer rephrase add elaborate illustrate remind share walk help guess "
    "stress emphasi[sz]e repeat introduce describe make~(?:it|this|that|one~thing) start~by~saying ask speak quote assure state note apologi[sz]e "
    "reiterate reassure have summari[sz]e~(?:what|this|that|briefly)? conclude define offer mention suggest phrase go~to~bed sleep paint"
)
_EN_NOT_DOING = _words(
    "looking~forward running~(?:out|on|as|at|in|with|version|low) using assuming hoping thinking~that wondering talking referring being having "
    "getting missing guessing leaning asking waiting~(?:for~you|to~hear|on~you) counting relying suggesting proposing recommending offering going "
    "speaking feeling saying enjoying seeing telling giving struggling doing~(?:well|fine|great|good) working~(?:as|well) standing~by lacking "
    "learning reading~between glad sorry willing"
)
_EN_NO_DOING = _words(
    "nothing everything something anything during according regarding including following depending morning evening meaning missing warning "
    "thing string setting interesting amazing pending assuming considering considered given being having speaking thinking knowing seeing "
    "happy~coding coming~soon looking~forward concerning excluding king ring spring bring sing good~morning good~evening"
)
_EN_BREAK = r"(?:^|[,;:–—]\s*|\s-\s)(?:(?:so|and|but|now|first|then|next),? )*"


_DE_DO = _words(
    "schaue? sehe? prüfe überprüfe starte führe öffne lese suche beginne fange erstelle schreibe aktualisiere teste rufe hole lade "
    "installiere behebe kümmere korrigiere analysiere untersuche mache lege ändere durchsuche sende schicke baue füge entferne lösche "
    "passe versuche probiere wechsle sichere spiele leite übersetze vergleiche berichtige ersetze räume trage stelle bereite sammle "
    "ermittle berechne rechne wandle ordne bearbeite benenne verschiebe kopiere speichere buche reserviere frage gehe springe mache "
    "setze ergänze überarbeite formatiere generiere lasse hänge nehme~mir werfe gebe~das packe gleiche stoße verteile melde fahre~(?:jetzt|nun|mit|gleich) verkleinere vergrößere befrage rufe kontaktiere erweitere kürze zähle filtere verbinde trenne verarbeite mahne drucke beantrage bestelle markiere verschlüssele entpacke schließe~die stoppe klone committe pushe merge deploye debugge"
)
_DE_NOW = "jetzt|nun|dann|als nächstes|als erstes|zuerst|zunächst|gleich|danach|anschließend|daraufhin|im nächsten schritt|sofort"
_FR_NOT = r"(?!être|bien|mieux|avoir|pouvoir|devoir|rester|vous expliquer|expliquer|résumer|supposer|garder|attendre|dire|te dire|vous dire|m'en tenir)"
_FR_DO = _words(
    "vérifie lance regarde consulte cherche recherche lis crée écris exécute ouvre commence démarre installe corrige analyse examine "
    "génère prépare mets modifie teste procède envoie ajoute supprime télécharge explore récupère inspecte compare traduis transmets "
    "relance réessaie essaie calcule rédige remplace renomme copie déplace enregistre réserve rassemble applique construis déploie "
    "interroge passe fais termine traite finalise publie retire nettoie convertis complète trie continue poursuis reprends découpe réduis agrandis filtre compte ordonne réorganise déplace télécharge valide commande clone fusionne"
)
_ES_DO = _words(
    "reviso compruebo verifico ejecuto busco leo creo escribo actualizo abro inicio empiezo comienzo instalo pruebo consulto analizo "
    "genero hago lanzo examino envío preparo modifico arreglo añado agrego elimino descargo investigo comparo traduzco paso corrijo "
    "miro borro cambio calculo redacto copio muevo guardo reservo aplico construyo despliego intento reintento procedo recojo publico "
    "completo sustituyo renombro convierto ordeno termino continúo sigo"
)
_ES_NOT = r"(?!ser\b|estar\b|tener\b|poder\b|explicar|resumir|recordar|suponer|esperar|decir|dejar|mantener|seguir siendo|necesitar|hablar)"
_IT_DO = _words(
    "controllo verifico eseguo cerco leggo creo(?!~(?:que|che|el)\\b) scrivo aggiorno apro avvio inizio comincio guardo installo provo riprovo consulto analizzo "
    "genero lancio correggo preparo invio modifico aggiungo rimuovo scarico esamino procedo faccio confronto traduco passo cambio calcolo "
    "copio sposto salvo prenoto applico costruisco distribuisco raccolgo pubblico completo sostituisco rinomino converto ordino termino "
    "continuo elimino cancello carico recupero sistemo occupo metto testo elaboro divido unisco filtro conto disegno riduco ingrandisco chiedo chiamo estraggo formatto installo ordino monto"
)
_PT_NOT = r"(?!ser\b|estar\b|ter\b|poder\b|explicar|resumir|lembrar|supor|esperar|dizer|deixar|manter|precisar|falar|ficar|continuar sendo)"
_PT_DO = _words(
    "verifico confiro executo crio leio busco procuro escrevo atualizo abro inicio começo olho instalo rodo testo consulto analiso gero faço "
    "corrijo envio preparo modifico adiciono removo baixo investigo examino pesquiso comparo traduzo passo tento calculo copio movo salvo "
    "reservo aplico reviso publico completo substituo converto continuo termino apago"
)
_NL_DO = _words(
    "controleer bekijk kijk zoek lees start voer open schrijf maak begin test haal installeer werk pas update analyseer onderzoek "
    "verwijder voeg stuur download genereer bouw roep check ga vergelijk vertaal probeer herstel verbeter corrigeer wijzig vervang "
    "kopieer verplaats bewaar boek reserveer bereken verzamel plaats zet draai laad raadpleeg vraag neem~contact publiceer hernoem "
    "verwerk ruim rond duik splits verdeel combineer filter sorteer tel teken verklein vergroot bel mail koppel sluit stop markeer deel~het"
)
_PL_DO = _words(
    "sprawdzę przejrzę uruchomię przeczytam poszukam wyszukam znajdę otworzę utworzę stworzę napiszę zaktualizuję zainstaluję "
    "przetestuję zacznę rozpocznę naprawię poprawię zobaczę obejrzę wykonam wygeneruję przygotuję pobiorę wyślę usunę dodam "
    "przeanalizuję zbadam zajmę spojrzę zrobię porównam spróbuję przetłumaczę zajrzę zmienię policzę obliczę skopiuję przeniosę "
    "zapiszę zarezerwuję zastosuję zbiorę opublikuję uzupełnię zastąpię przekażę wczytam zweryfikuję ponowię wdrożę skoryguję podzielę połączę wyodrębnię otworzę zadzwonię zapytam poproszę oczyszczę posortuję przefiltruję narysuję skrócę rozszerzę"
)
_PL_DOING = _words(
    "sprawdzam uruchamiam czytam szukam otwieram tworzę piszę aktualizuję instaluję testuję zaczynam rozpoczynam przechodzę pobieram "
    "zabieram~się biorę~się zajmuję wysyłam usuwam dodaję analizuję przygotowuję generuję poprawiam naprawiam kopiuję zapisuję "
    "porównuję tłumaczę~resztę przekazuję wykonuję wdrażam kontynuuję ponawiam przystępuję wyszukuję przeglądam obliczam zbieram"
)
_RU_DO = _words(
    "проверю посмотрю запущу прочитаю прочту найду поищу открою создам напишу обновлю установлю протестирую начну исправлю выполню "
    "сгенерирую подготовлю скачаю загружу отправлю удалю добавлю проанализирую изучу сделаю просмотрю займусь перейду соберу сравню "
    "попробую переведу гляну взгляну загляну изменю поменяю посчитаю подсчитаю рассчитаю скопирую перенесу сохраню забронирую применю "
    "опубликую дополню заменю передам повторю перезапущу разверну уточню выясню составлю перепишу разберусь возьмусь приступлю разобью разделю объединю спрошу позвоню очищу отсортирую отфильтрую нарисую сокращу расширю"
)
_RU_DOING = _words(
    "проверяю смотрю запускаю читаю ищу открываю создаю пишу обновляю устанавливаю тестирую начинаю приступаю перехожу выполняю "
    "загружаю скачиваю берусь отправляю удаляю добавляю анализирую готовлю генерирую исправляю копирую сохраняю сравниваю перевожу "
    "передаю разворачиваю продолжаю повторяю перезапускаю просматриваю считаю~строки собираю занимаюсь"
)
_UK_DO = _words(
    "перевірю подивлюся подивлюсь гляну запущу прочитаю знайду пошукаю відкрию створю напишу оновлю встановлю протестую почну виправлю "
    "виконаю згенерую підготую завантажу надішлю видалю додам проаналізую вивчу зроблю перегляну займуся займусь перейду зберу порівняю "
    "спробую перекладу зазирну загляну зміню порахую обчислю скопіюю перенесу збережу забронюю застосую опублікую доповню заміню "
    "передам повторю перезапущу розгорну уточню з'ясую складу перепишу розберуся візьмуся розіб'ю розділю об'єднаю спитаю подзвоню очищу відсортую відфільтрую намалюю скорочу розширю"
)
_UK_DOING = _words(
    "перевіряю дивлюся запускаю читаю шукаю відкриваю створюю пишу оновлюю встановлюю тестую починаю беруся переходжу виконую "
    "завантажую надсилаю видаляю додаю аналізую готую генерую виправляю копіюю зберігаю порівнюю перекладаю передаю розгортаю "
    "продовжую повторюю перезапускаю переглядаю збираю займаюся"
)
_ZH_DO = _words(
    "检查 查看 查询 查找 查一 看看 看一 读取 阅读 打开 运行 执行 搜索 搜一 创建 编写 写入 更新 修改 修复 开始 生成 安装 测试 分析 调用 处理 "
    "获取 下载 上传 启动 构建 部署 验证 确认 继续 尝试 准备 整理 收集 浏览 添加 删除 试试 试一 再试 比较 对比 翻译 派发 分派 修正 更正 转交 转给 "
    "计算 统计 复制 移动 保存 预订 应用 发布 补充 替换 重试 重新 撰写 去办 去做 着手 切换 进入 合并 提交 推送 清理 转换 发送 提取 解压"
)
_JA_DO = _words(
    "確認 実行 調査 検索 作成 更新 修正 開始 分析 取得 検証 テスト 追加 削除 インストール ダウンロード アップロード 生成 起動 チェック 準備 着手 再実行 "
    "解析 処理 比較 再試行 翻訳 計算 集計 コピー 移動 保存 予約 適用 公開 補足 置換 変更 送信 抽出 展開 整理 編集 構築 デプロイ 収集 再起動 変換 対応 委任 依頼"
)
_JA_END = r"(?:ね)?[。：:…\s]*$"
_KO_DO = _words(
    "확인 실행 검색 조회 작성 수정 생성 시작 분석 다운로드 업로드 설치 테스트 검토 조사 업데이트 추가 삭제 변경 준비 진행 처리 비교 번역 계산 복사 이동 "
    "저장 예약 적용 배포 재시도 전달 수집 정리 빌드 호출 점검 열람 변환 전환 제출 전송 추출 착수 살펴 찾아 읽어 열어 만들 고쳐 넘어"
)

LANGUAGES: tuple[Language, ...] = (
    Language(
        "en",
        (
            rf"{_EN_BREAK}let me (?!{_EN_HOW}{_EN_NOT_LET}\b)\w{{2,}}\b",
            rf"{_EN_LEAD}(?:now )?{_EN_I_WILL} (?!{_EN_HOW}{_EN_NOT_WILL}\b)\w{{2,}}\b",
            r"\bi(?:'ll| will) (?:have|get) (?:that|this|it|everything) (?:ready|done|sorted|fixed|finished)\b",
            rf"(?:[;–—]\s*|, (?:so|and|but) ){_EN_I_WILL} {_EN_HOW}{_EN_DO}\b",
            rf"\bi(?:'ll| will) now {_EN_HOW}{_EN_DO}\b",
            rf"(?:{_EN_LEAD}|, (?:so|and) )i(?:'m| am) (?:now |currently |just |still )?(?:{_EN_DOING}|(?!{_EN_NOT_DOING})\w{{2,}}ing (?:the|your|a|an|it|them|all|up|now)\b)",
            rf"{_EN_LEAD}(?:now|next),? {_EN_DOING}\b",
            rf"{_EN_LEAD}{_EN_DOING}\b.*(?::|…|\.\.\.| now[.!]*| again[.!]*)$",
            rf"^(?:here (?:we|it) goes?[,:!]? |now |next,? |next up:? )?(?!{_EN_NO_DOING}\b)\w{{2,}}ing\b.*(?::|…|\.\.\.| now[.!]*)$",
            r"^(?:trying|running|starting) (?:it |this |that )?(?:again|over|anew)\b|^here we go[,:] \w+ing\b",
            rf"^next (?:step|task|up|item):? {_EN_DO}\b",
            rf"^i just (?:need|have|want) to {_EN_DO}\b",
            r"^(?:now |next up:? )?(?:writing|drafting|preparing|compiling|generating|creating|fetching|building) (?:the|your|a) [\w\s-]{3,50}\W*$",
            r"^(?:proceeding|moving on|continuing|starting)\b[^,]*$",
            r"^next up(?: is)?\b.*:",
            r"^(?:on it|working on (?:it|this|that))(?: now)?\W*$",
            r"^(?:now,? )?on ?to (?:the next|the \w+ one|task|step|phase|part|chapter|batch)\b",
            rf"{_EN_LEAD}(?:it's )?time to {_EN_DO}\b",
            rf"{_EN_LEAD}now to {_EN_DO}\b.*[:…]$",
            rf"{_EN_LEAD}(?:now )?i (?:need|have|want|still need) to {_EN_HOW}{_EN_DO}\b.*(?:\b(?:first|now)\W*|:)$",
            rf"^now i (?:need|have) to {_EN_DO}\b",
            rf"^before .{{0,60}}, i (?:want|need|have) to {_EN_DO}\b|^i (?:want|need|have) to {_EN_DO}\b.{{0,60}} before i\b",
            rf"{_EN_LEAD}let's {_EN_HOW}(?:check|look|read|run|see (?:what|if|how)|verify|inspect|dig|search|open|examine|fix|create the|write the|update the)\b",
            rf"\b(?:please )?(?:wait|hold(?: on)?|bear with me|stand by) while i {_EN_DO}\b|^give me (?:a|one|two|just a) \w+ to {_EN_DO}\b",
        ),
        (
            r"\blet me know\b(?! (?:what|when) it)",
            r"(?<!check )(?<!see )(?<!verify )\bif (?:you|needed|necessary|desired|(?:that|this) (?:works for|is ok|is fine|looks))\b",
            r"\b(?:once|when|whenever|after|as soon as|until|unless) you\b|\b(?:once|as soon as|when) i have\b|\bunless\b|\bjust say\b|\bsay the word\b",
            r"\byour (?:permission|approval|ok|okay|go-ahead|confirmation|decision|reply|answer)\b",
            r"\b(?:from now on|going forward|in (?:the )?future|next time|tomorrow|tonight|later|every (?:day|week|hour|morning))\b",
            r"\b(?:never|always|do my best|make sure|be happy|be glad|try to (?:be|keep)|not (?:sure|going|able|run|execute|touch|do|delete|change))\b|n't (?:run|do|touch|go)\b",
            r"^(?:please |just )?(?:tell|send|share|paste|give|provide|confirm|upload|let me (?:have|know)|reply|pick|choose|drop|attach|say)\b.*\bi(?:'ll| will)\b",
            r"\brunning (?:on|as|at|in|with|version|low|out)\b|\bdon't let me\b|\bi can\b|\bi could\b|\bgood practice\b",
        ),
        r"\b(?:please(?! (?:wait|hold|stand|bear|be patient))|(?:could|can|would|will|do|did|have|are) you|which (?:one|of|file)|shall i|"
        r"should i|want me|(?:send|tell|give|show) me|share|paste|upload|attach)\b",
        r"(?:just )?(?:one|a) (?:moment|second|sec|minute)(?: please)?|please (?:wait|hold on|stand by|bear with me)(?: a moment| a second)?|"
        r"hold on|bear with me|stand by|hang on(?: a (?:second|moment))?",
    ),
    Language(
        "de",
        (
            rf"(?:^|[,;:–—]\s*|\b(?:und|dann|nun|jetzt|deshalb|daher|also) )ich (?:werde|{_DE_DO})\b(?!.*\bdass\b)",
            rf"(?:^|[,;:–—]\s*)(?:(?:ok|okay|gut|so),? )?(?:{_DE_NOW}) (?:werde|{_DE_DO}) ich\b",
            rf"^(?:{_DE_NOW}) (?!habe|hätte|bin|kann|könnte|würde|weiß|denke|verstehe|muss|soll|darf|möchte|glaube|sehe|hoffe|wünsche)\w+e ich\b",
            r"^(?:\w+, )?ich (?!habe|hätte|kann|könnte|würde|denke|verstehe|möchte|glaube|sehe|hoffe|wünsche|finde|rate|empfehle|freue|verwende|nutze|bleibe|warte|meine|danke|brauche)\w+e (?!.*\bdass\b).*\b(?:jetzt|nun|gleich|sofort|eben|erneut)\b",
            rf"^(?:de[nr]|das|die|dies\w*) (?:\w+ ){{0,2}}(?:werde|{_DE_DO}) ich\b.*\b(?:jetzt|nun|gleich|sofort)\b",
            r"\b(?:lass|lassen sie) mich (?!wissen|raten|kurz zusammen|zusammenfassen|erklären)\w",
            rf"^{_DE_DO}\b.*{_DOTS}",
            r"^(?:weiter (?:geht es )?mit|nun zu|jetzt zu|nun folgt|jetzt folgt|es folgt) \w+.*:",
            r"^(?:ich )?bin (?:gerade )?dabei,? |^ich (?:mache|begebe) mich\b|^wird (?:sofort )?erledigt\b",
        ),
        (
            r"\b(?:wenn|falls|sobald|sofern) (?:du|sie|ihr|das|es|die|der|ich|nötig|gewünscht)\b|\b(?:sag|sagen sie|gib|geben sie) (?:mir )?(?:einfach |kurz )?bescheid\b",
            r"\b(?:gern|gerne|nie|niemals|künftig|in zukunft|ab sofort|morgen|später|ich kann|ich könnte|soll ich)\b",
            r"\b(?:stelle|gehe|nehme) (?:\w+ ){0,2}(?:vor|davon aus|an, dass)\b|\bfrage mich\b|\bstehe\b",
            r"^(?:bitte )?(?:schick|schicke|schicken sie|sende|senden sie|gib|geben sie|nenne|nennen sie|zeig|zeige|teile|sag|sagen sie)\b(?!.*(?:…|\.\.\.)$)",
        ),
        r"\b(?:bitte(?! warten)|könntest|kannst|können sie|könnten sie|möchtest|möchten sie|soll ich|welche[rsn]?|schick|sende mir)\b",
        r"(?:einen|ein) (?:moment|augenblick)(?: bitte)?|moment(?: bitte)?|bitte (?:einen moment )?warten",
    ),
    Language(
        "es",
        (
            rf"(?:^|[,;:–—.]\s*|\b(?:y|así que|ahora|primero|entonces|luego|después) )(?:ahora )?(?:yo )?(?:voy a|vamos a|procedo a|procederé a|paso a) (?:\w+mente )?{_ES_NOT}\w+[aei]r(?:l[oae]s?|me|te|se)?\b",
            rf"(?:^|[,;:–—]\s*|\bahora )(?:déj[ae]me|dejame|permíteme|permítame|permítanme) (?:\w+ )?{_ES_NOT}\w+[aei]r(?:l[oae]s?)?\b",
            rf"(?:^|[,;:–—]\s*|\b(?:y|así que|por eso) )(?:(?:\w+, )?(?:ahora|ahora mismo|primero|a continuación|enseguida|ya mismo|luego|después|ya),? )?(?:(?:me|l[oae]s?|se l[oa]) )?{_ES_DO}\b(?! que)",
            r"^(?:(?:\w+, )?(?:ahora|luego|después|primero|a continuación|enseguida),? )?(?!ser|estar|tendr|podr|esperar|har[ée] lo)\w+(?:aré|eré|iré)\b",
            r"^(?:ahora|luego|después|enseguida|primero),? (?!tengo|creo|puedo|quiero|veo|entiendo|todo|como|cuando|solo|mismo|bajo|espero|pienso|necesito|siento)(?:(?:l[oae]s?|me) )?\w+o (?:el|la|los|las|un|una|todo)\b",
            r"\b(?:me pongo (?:a|con)|me encargo|me ocupo)\b|^(?:pasemos|pasamos|continuemos|sigamos) (?:a|con)\b",
            rf"^(?:\w+, )?(?:estoy )?\w+(?:ando|iendo|yendo) .*(?:{_DOTS}|:$|\bahora\W*$)",
            r"\bestoy \w+(?:ando|iendo|yendo) (?:el|la|los|las|un|una|tu|tus|su)\b",
            rf"\ben curso ?{_DOTS}",
        ),
        (
            r"\bsi (?:quieres|quiere|necesitas|necesita|lo deseas|lo desea|te parece|prefieres|me)\b|\b(?:avísame|avíseme|dime|dígame|házmelo saber|déjame saber)\b",
            r"\b(?:cuando (?:quieras|me|lo)|en cuanto|una vez que|nunca|mañana|más tarde|puedo|podría)\b|\bno voy\b",
            r"^(?:por favor,? )?(?:envíame|mándame|pásame|comparte|indícame)\b",
        ),
        r"\b(?:por favor(?!,? esper)|puedes|podrías|puede|quieres|quiere que|envíame|mándame|pásame|comparte|cuál)\b",
        r"(?:un|dame un|deme un) (?:momento|segundo|instante)(?:,? por favor)?|espera un momento",
    ),
    Language(
        "fr",
        (
            rf"(?:^|[,;:–—.]\s*|\b(?:et|donc|maintenant|d'abord|ensuite|puis) )je vais (?:(?!être|bien)(?:maintenant|d'abord|aussi|ensuite|tout de suite|donc|immédiatement|le|la|les|l'|en|y|me) )*{_FR_NOT}(?:l'|m'|d'abord )?\w+(?:er|ir|re|oir)\b",
            rf"(?:^|[,;:–—]\s*|\b(?:maintenant|d'abord) )(?:laissez|laisse|permettez|permets)-moi (?:d'abord |de |d'|un instant pour ){{0,2}}{_FR_NOT}\w+(?:er|ir|re|oir)\b",
            rf"(?:^|[,;:–—]\s*|\b(?:maintenant|ensuite|d'abord|donc|puis|et) )j(?:e |')(?:(?:l'|le |la |les |y )?{_FR_DO})\b(?! que)",
            r"(?:^|[,;:–—]\s*|\b(?:maintenant|ensuite|puis|et|donc) )je (?:l'|le |la |les )?(?!serai|aurai|pourrai|devrai|resterai|saurai|voudrai|dirai)\w+[ei]rai\b",
            r"\bje m'(?:en (?:occupe|charge)|apprête à|y mets|occupe de)\b|^je (?:procède|passe) (?:à|au|maintenant)\b",
            r"^(?:passons|je passe|poursuivons) (?:à|au|aux|avec)\b",
            rf"^\w+.* en cours ?{_DOTS}",
            r"\bje suis en train (?:de|d')",
        ),
        (
            r"\bsi (?:vous|tu|besoin|nécessaire)\b|\bs'il le faut\b|\bn'hésite|\b(?:dites|dis)-moi\b|\bfaites-moi savoir\b",
            r"\b(?:dès que|lorsque|quand|une fois que) (?:vous|tu)\b|\b(?:jamais|demain|plus tard|désormais|je peux|je pourrais)\b|\bne (?:\w+ )?pas\b",
            r"^(?:envoyez|envoie|donnez|donne|partagez|partage|indiquez)(?:-moi)?\b",
        ),
        r"\b(?:s'il (?:te|vous) plaît|peux-tu|pouvez-vous|pourriez-vous|veux-tu|voulez-vous|envoyez|envoie|quel|quelle|partagez)\b",
        r"(?:un|juste un) (?:instant|moment)(?:,? s'il (?:te|vous) plaît)?|veuillez patienter",
    ),
    Language(
        "pt",
        (
            rf"(?:^|[,;:–—.]\s*|\b(?:e|então|agora|primeiro|já|depois) )(?:eu )?(?:já )?vou (?:(?:agora|primeiro|já|começar a|também|te|lhe) )*{_PT_NOT}\w+[aeio]r\b",
            rf"(?:^|[,;:–—]\s*|\bagora )(?:deixe-me|deixa-me|deixa eu|deixe eu|permita-me) (?:\w+ )?{_PT_NOT}\w+[aei]r\b",
            rf"(?:^|[,;:–—]\s*|\b(?:e|então|por isso) )(?:(?:agora|primeiro|em seguida|já|depois|a seguir),? )(?:eu )?{_PT_DO}\b(?! que)",
            r"^(?:agora|depois|em seguida|primeiro),? (?:eu )?(?!tenho|acho|posso|quero|vejo|entendo|tudo|como|quando|mesmo|espero|penso|preciso|sinto|todo)\w+o (?:o|a|os|as|um|uma|tudo)\b",
            rf"^(?:eu )?{_PT_DO} (?:o|a|os|as|um|uma|agora|isso|já)\b",
            rf"^(?:\w+, )?(?:estou )?\w+(?:ando|endo|indo) .*(?:{_DOTS}|:$|\bagora\W*$)",
            r"\bestou (?:\w+ )?(?!usando|pensando|falando|sendo|tendo|querendo|entendendo|vendo)\w+(?:ando|endo|indo)\b",
            r"^(?:(?:agora|depois|primeiro|em seguida|a seguir),? )?(?!ser|estar|ter|poder|ficar)\w+[aei]rei\b",
            r"^(?:passemos|passamos|vamos) (?:à|ao|para|a)\b",
            rf"\bem andamento ?{_DOTS}",
        ),
        (
            r"\b(?:se|caso) (?:quiser|precisar|você|desejar|preferir|houver)\b|\bcaso\b|\b(?:me avise|avise-me|me diga|diga-me|deixe-me saber|me deixe saber)\b",
            r"\b(?:quando (?:você|quiser)|assim que|nunca|amanhã|mais tarde|posso|poderia)\b|\bnão vou\b",
            r"^(?:por favor,? )?(?:envie|mande|compartilhe|informe|me envie|me mande)\b",
        ),
        r"\b(?:por favor(?!,? aguarde)|você (?:pode|poderia)|poderia|pode me|quer que|envie|mande|compartilhe|qual)\b",
        r"(?:só )?um (?:momento|instante|segundo)(?:,? por favor)?|aguarde(?: um momento)?(?:,? por favor)?",
    ),
    Language(
        "it",
        (
            rf"(?:^|[,;:–—.]\s*|\b(?:e|quindi|allora|perciò) )(?:(?:bene|ok|certo|ora|adesso|prima|poi|subito|intanto|dopo),? ){{0,2}}(?:(?:lo|la|li|le|mi|me ne|ci) )?{_IT_DO}\b(?! che)",
            r"^(?:ora|adesso|poi|subito|quindi|intanto),? (?!sono|ho|penso|credo|spero|trovo|capisco|vedo|posso|devo|vorrei|voglio|sto|tutto|molto|solo|quanto|questo|quello|dopo|sotto)(?:(?:lo|la|li|le|mi|ne) )?\w+o (?:il|lo|la|i|gli|le|l'\w+|un|una|tutto|subito)\b",
            r"(?:^|[,;:–—]\s*|\b(?:ora|adesso|prima) )(?:fammi|lasciami|mi lasci|permettimi di|mi permetta di) (?:\w+ ){0,2}(?!sapere|capire|spiegare|riassumere)\w+(?:are|ere|ire)\b",
            r"(?:^|[,;:–—]\s*|\b(?:ora|adesso) )(?:vado a|sto per|procedo (?:a|ad|con)|inizio (?:a|con|da)) ?",
            rf"^\w+(?:ando|endo) .*(?:{_DOTS}|:$)",
            r"\bsto (?:\w+ )?(?!usando|pensando|parlando|dicendo|avendo)\w+(?:ando|endo)\b",
            r"^(?:(?:ora|adesso|poi|dopo|prima|quindi),? )?(?!sarò|avrò|potrò|dovrò|resterò|rimarrò)\w+[ei]rò\b",
            r"^(?:passiamo|andiamo|proseguiamo) (?:a|ad|al|all'|alla|ai|con)\b|^passiamo all'",
            rf"\bin corso ?{_DOTS}",
        ),
        (
            r"\bse (?:vuoi|vuole|hai|ha|ti|le|preferisci|necessario|serve)\b|\b(?:fammi|mi faccia) sapere\b|\bdimmi\b",
            r"\b(?:quando (?:vuoi|vuole)|appena|non appena|mai|domani|più tardi|posso|potrei)\b",
            r"^(?:per favore,? )?(?:inviami|mandami|condividi|indicami)\b",
        ),
        r"\b(?:per favore(?!,? attend)|puoi|potresti|può|vuoi|vuole che|inviami|mandami|condividi|quale)\b",
        r"(?:un|solo un) (?:attimo|momento|istante)(?:,? per favore)?|attendi(?:,? per favore)?",
    ),
    Language(
        "nl",
        (
            rf"(?:^|[,;:–—]\s*|\b(?:en|dan|nu|eerst|dus|daarom) )ik (?:zal|{_NL_DO})\b(?!.*\bdat\b)",
            rf"(?:^|[,;:–—]\s*)(?:(?:oké|goed),? )?(?:nu|dan|eerst|vervolgens|daarna|hierna) (?:ga|zal|{_NL_DO}) ik\b",
            r"(?:^|[,;:–—]\s*)laa?t (?:me|mij|ik) (?!(?:het )?weten)(?:\w+ ){0,6}\w+en\b",
            r"^(?:nu|dan|eerst|vervolgens|daarna) (?!heb|ben|kan|zou|weet|denk|snap|begrijp|moet|wil|mag|zie)\w+ ik\b",
            r"^(?:\w+, )?ik (?!heb|ben|kan|zou|weet|denk|raad|vind|hoop|moet|wil|mag|zie|gebruik|snap|begrijp|sta|blijf|wacht|woon|heet)\w+ .*\b(?:nu|meteen|even|direct|opnieuw)\b",
            rf"^(?:bezig met|\w+ (?:wordt|worden)) .*{_DOTS}",
            r"^(?:door|verder|nu) (?:naar|met) (?:taak|stap|de volgende|het volgende|deel|hoofdstuk)\b",
        ),
        (
            r"\b(?:als|indien|zodra|wanneer|mocht) (?:je|u|dat|nodig)\b|\blaat (?:het )?(?:me|mij) (?:het )?weten\b",
            r"\b(?:graag|nooit|niet|morgen|later|voortaan|ik kan|ik zou)\b|\bga (?:ervan|er van) uit\b|\bsta\b",
            r"^(?:stuur|deel|geef|zeg)(?: me| mij| maar)?\b",
        ),
        r"\b(?:alsjeblieft|alstublieft|kun je|kunt u|wil je|wilt u|zal ik|stuur|deel|welke?)\b",
        r"(?:een|één) (?:moment|ogenblik)(?: geduld)?(?: (?:alsjeblieft|alstublieft|a\.u\.b))?|momentje",
    ),
    Language(
        "pl",
        (
            rf"(?:^|[,;:–—]\s*|, (?:więc|dlatego) )(?:(?:dobrze|ok|okej|jasne|świetnie)[,.]? )?(?:(?:teraz|zaraz|najpierw|następnie|za chwilę|już|od razu|szybko|więc|ja|się|tym|potem|to|dlatego|jeszcze raz) )*(?:{_PL_DO}|{_PL_DOING})\b",
            r"^(?:teraz|zaraz|najpierw|następnie|potem|za chwilę),? (?!rozumiem|wiem|mam|jestem|widzę|mogę|chcę|muszę|myślę|umiem|pamiętam|czekam|używam)\w+(?:ę|am)\b",
            r"\bpozwól(?:cie)?,? że\b|\bzamierzam teraz\b|\bprzystępuję do\b|^(?:przejdźmy|czas przejść) do\b",
            rf"^trwa \w+.*{_DOTS}",
        ),
        (
            r"\b(?:jeśli|jeżeli|gdy|gdyby|kiedy|jak tylko|dopóki)\b|\bdaj(?:cie)? (?:mi )?znać\b",
            r"\b(?:nigdy|nie|jutro|później|mogę|mógłbym|chętnie)\b",
            r"^(?:proszę )?(?:wyślij|prześlij|podaj|wklej|udostępnij|powiedz|napisz|wybierz)\b",
        ),
        r"\b(?:proszę(?! (?:czekać|poczekać))|możesz|czy mam|czy chcesz|wyślij|prześlij|podaj|wklej|który|którą)\b",
        r"(?:chwileczkę|moment|chwilę|proszę (?:czekać|poczekać)|jedną chwilę)(?:,? proszę)?",
    ),
    Language(
        "ru",
        (
            rf"(?:^|[,;:–—]\s*|, (?:и|поэтому|так что) )(?:(?:хорошо|ладно|отлично|окей|понял|поняла|да)[,.!]? )?(?:(?:сейчас|теперь|сначала|затем|далее|потом|дальше|сразу|быстро|давайте|давай|я|тогда|ещё|еще|же|уже|поэтому|это|этим|немедленно|дальше|и|снова) )*(?:{_RU_DO}|{_RU_DOING})\b",
            r"\b(?:позвольте|позволь)(?: мне)?(?: \w+)? (?!объяснить|пояснить|напомнить|сказать)\w+ть\b|\b(?:сейчас|теперь) (?:я )?буду \w+ть\b|^(?:сейчас |теперь )?я собираюсь\b",
            r"^(?:сейчас|теперь|сначала|затем|далее|потом),?(?: я)? (?!вижу|понимаю|знаю|думаю|могу|хочу|жду|живу|использую|рекомендую|советую|считаю|работаю|почему|одну|эту|вашу|твою|всю|бы)\w+(?<!ую)[ую]\b(?! бы)",
            r"^(?:перейдём|перейдем|переходим) к\b",
        ),
        (
            r"\b(?:если|когда вы|когда ты|как только|после того как)\b|\bдайте? (?:мне )?знать\b|\bсообщите\b",
            r"\b(?:никогда|не(?! (?:проходит|работает))|завтра|позже|могу|мог бы|могла бы|бы|впредь|с удовольствием|как (?:будете|будешь|скажете))\b",
            r"^(?:пожалуйста,? )?(?:пришлите?|отправьте?|скиньте?|укажите?|вставьте?|скажите?|выберите|назовите|напишите)\b",
        ),
        r"\b(?:пожалуйста(?!,? подожд)|можете|можешь|хотите|хочешь|пришлите?|отправьте|скиньте?|укажите|какой|какую)\b",
        r"(?:одну )?(?:минуту|минутку|секунду|секундочку)|один момент|подождите(?:,? пожалуйста)?",
    ),
    Language(
        "uk",
        (
            rf"(?:^|[,;:–—]\s*|, (?:і|й|тому|тож) )(?:(?:добре|гаразд|чудово|зрозумів|зрозуміла|так)[,.!]? )?(?:(?:зараз|тепер|спочатку|спершу|потім|далі|відразу|одразу|швидко|давайте|я|тоді|ще|вже|тому|це|цим|негайно|і|й|знову) )*(?:{_UK_DO}|{_UK_DOING})\b",
            r"\b(?:дозвольте|дозволь)(?: мені)?(?: \w+)? (?!пояснити|нагадати|сказати)\w+ти\b|\b(?:зараз|тепер) (?:я )?буду \w+ти\b|^(?:зараз |тепер )?я збираюся\b",
            r"^(?:(?:зараз|тепер|далі|потім|спочатку|спершу|я),? )*\w+тиму(?:ся)?\b",
            r"^(?:зараз|тепер|спочатку|спершу|потім|далі),?(?: я)? (?!бачу|розумію|знаю|думаю|можу|хочу|чекаю|живу|використовую|рекомендую|раджу|вважаю|працюю|чому|одну|цю|вашу|твою|всю)[\w']+(?<!ую)[ую]\b(?! б)",
            r"^(?:перейдімо|переходимо) до\b",
        ),
        (
            r"\b(?:якщо|коли ви|коли ти|як тільки|щойно ви|після того як)\b|\bдайте? (?:мені )?знати\b|\bповідомте\b",
            r"\b(?:ніколи|не(?! (?:проходить|працює))|завтра|пізніше|можу|міг би|могла б|б|би|надалі|залюбки|як (?:будете|будеш|скажете))\b",
            r"^(?:будь ласка,? )?(?:надішліть|надішли|скиньте|вкажіть|вставте|скажіть|скажи|виберіть|назвіть|напишіть)\b",
        ),
        r"\b(?:будь ласка(?!,? зачек)|можете|можеш|хочете|хочеш|надішліть|скиньте|вкажіть|який|яку)\b",
        r"(?:одну )?(?:хвилину|хвилинку|хвилиночку|секунду|секундочку)|один момент|зачекайте(?:,? будь ласка)?",
    ),
    Language(
        "tr",
        (
            r"(?<!bil)(?<!düşünü)(?<!san)(?<!um)(?<!isti)(?<!öneri)(?<!anlı)(?<!bekli)(?<!inanı)(?<!görü)(?<!ede )\b\S*(?:[ıiuü]yorum|[ea]c[ea][gğ][ıi]m)\b[.:…! ]*$",
            r"\S+[ea]y[ıi]m\b[.:…! ]*$",
            rf"\S+(?:ıyor|iyor|uyor|üyor) ?{_DOTS}",
        ),
        (
            r"\b(?:eğer|ister(?:se|seniz|sen)\S*|dilerse\S*|olursa\S*|gerekirse)\b|\S+(?:[ıiuü]rsan(?:ız|iz)?|[ea]rsen(?:iz)?|d[ıiuü]ğ[ıiuü]nde)\b",
            r"\b(?:bilmi|düşünü|sanı|umu|isti|öneri|anlı|bekli|inanı|görü|bili|hatırlı|tavsiye edi|rica edi|teşekkür edi|kullanı|duyu|memnun olu|seviyo|kabul edi|katılı|özür dili)yorum\b|\bmutluluk\b|\bmemnuniyet|m[ıiuüea]yorum\b|m[ea]y[ea]c[ea]ğ[ıi]m\b",
            r"\b(?:yarın|sonra haber|asla|bundan sonra|bundan böyle|ebilirim|abilirim)\b|\S+(?:abilirim|ebilirim)\b",
            r"\b(?:gönder(?:in|ir)|yolla(?:yın|r)|söyle(?:yin|r)|paylaş(?:ın|ır)|belirt(?:in|ir)|seç(?:in|er)|yaz(?:ın))\b|\S+(?:tiğinizi|diğinizi|duğunuzu|düğünüzü|tığınızı) söyle",
        ),
        r"\b(?:lütfen(?! bekle)|misiniz|mısınız|ister misin|gönderin|paylaşın|söyleyin|hangi)\b",
        r"(?:bir|lütfen bir) (?:dakika|saniye|an)(?: lütfen)?|lütfen bekleyin|bekleyin lütfen",
    ),
    Language(
        "ar",
        (
            r"(?:^|[\s،:؛])[وف]?سأ(?!كون|بقى|ظل|فترض|تذكر|نتظر|شرح|لخص|قول|حتاج|حرص|خبرك)\w+",
            r"(?:^|[\s،:؛])[وف]?سوف أ(?!كون|بقى|ظل|فترض|تذكر|نتظر|شرح|لخص|قول|حتاج)\w+",
            r"(?:^|[\s،:؛])(?:دعني|دعوني|اسمح لي|اسمحوا لي) (?:أن )?(?:أولا )?(?:ب|أ)(?!شرح|وضح|لخص)\w+",
            rf"^(?:جار[ٍي]?|يجري|يتم) .*(?:{_DOTS}|الآن)",
            r"(?:^|[\s،:؛])(?:أقوم|أنتقل|أبدأ|أعمل|أفتح|أبحث|أتحقق|أشغّل|أراجع|أكتب|أنشئ) (?:ال[آا]ن|حاليا)",
            r"^ال[آا]ن (?:أقوم|أنتقل|أبدأ|أفتح|أبحث|أتحقق|أشغّل|أراجع|أكتب|أنشئ)",
            r"(?:^|[\s،:؛])أ(?!عتقد|ظن|رى|نا|و|ن|يضا|كثر|فضل|حب|عرف|فهم|ملك|علم)\w{2,} ال[آا]ن",
            r"^(?:لننتقل|ننتقل) (?:الآن )?إلى",
        ),
        (
            r"(?:^|[\s،])(?:إذا|إن (?:أردت|شئت|كنت|رغبت|احتجت)|لو|عندما|بمجرد|حالما|متى|لن|غدا|غدًا|لاحقا|لاحقًا|أبدا|دائما|دائمًا|من الآن فصاعدا)(?:[\s،]|$)",
            r"(?:أخبرني|أعلمني|أرسل|أرسلي|شارك|زودني|حدد|اختر|قل لي|اكتب لي)",
            r"يمكنني|أستطيع|بإمكاني",
        ),
        r"من فضلك(?! انتظر)|هل |أرسل|شارك|زودني|أخبرني|يرجى(?! الانتظار)",
        r"(?:لحظة|دقيقة|ثانية)(?: واحدة)?(?: من فضلك)?|انتظر لحظة|يرجى الانتظار",
    ),
    Language(
        "hi",
        (
            r"(?:मैं|^|अब|पहले|फिर|[;,–—:] ?|तो|इसलिए).*(?:रहा|रही|ता|ती) (?:हूँ|हूं)[।.:…! ]*$",
            r"(?:ूँगा|ूँगी|ूंगा|ूंगी|ऊँगा|ऊँगी|ऊंगा|ऊंगी)[।.:…! ]*$",
            r"मुझे .*(?:ने|ना) (?:दीजिए|दीजिये|दें|दो)[।.:…! ]*$",
        ),
        (
            r"अगर|यदि|चाहें|चाहते|चाहेंगे|सकता|सकती|नहीं|कभी|हमेशा|कल |बाद में|जब |जैसे ही",
            r"मानता|मानती|समझता|समझती|जानता|जानती|चाहता|चाहती|लगता|सलाह|सुझाव|उम्मीद|आशा|सोचता|सोचती|याद रख|करने का अनुरोध",
            r"बताइए|बताएँ|बताएं|बताओ|भेजिए|भेजें|भेजो|साझा करें|दीजिए,|चुनिए|चुनें",
        ),
        r"कृपया(?! (?:प्रतीक्षा|रुक))|क्या आप|भेजिए|भेजें|बताइए|बताएँ|कौन सा|कौन सी",
        r"(?:एक|ज़रा|जरा) (?:मिनट|पल|क्षण)(?: रुकिए| रुकें)?|कृपया (?:प्रतीक्षा करें|रुकें|रुकिए)|रुकिए",
    ),
    Language(
        "zh",
        (
            rf"(?:让我|我来|我先|我会|我将|我现在|我马上|我这就|我去|我再|我接着|我要|我需要先|我立即|我立刻|我正在|我继续)(?:们)?(?:[^，。,；]{{0,6}})?{_ZH_DO}",
            r"我(?:现在|马上|先|这就|接着|来|这就去|再)(?:把|将|给|用|对)[^，。]{2,}",
            rf"(?:^|[，。、])(?:现在|接下来|下面|那么)我[^，。]{{0,8}}{_ZH_DO}",
            rf"^(?:现在|接下来|下面)?开始{_ZH_DO}[^，。]*[：:…]+$",
            rf"^(?:好的[，,。！!])?我用[^，。]*再?{_ZH_DO}",
            rf"(?:^|[，。、])(?:现在|接下来|下面|马上|首先|然后|下一步|立即|随后|接着)[，,]?(?:(?:我|就|将|来|开始|会|要)+(?:先)?{_ZH_DO}[^，。]*[。：:…]+|先?{_ZH_DO}[^，。]*[：:…]+)$",
            rf"^(?:好的[，,。！!])?正在[^，。]{{0,8}}{_ZH_DO}",
            r"^正在[^，。]*(?:…+|\.\.\.)$",
        ),
        (
            r"如果|若|假如|要是|只要|一旦|等您|等你|告诉我|随时|的话|(?<!可)可以|能够|不会|以后|今后|明天|稍后|已经|已(?!经)|了。$|吗|请你|请您|之后我|后我",
            r"(?:发给我|发我|给我看|提供给我|上传).*我来?|你(?:需要|应该|可以|要)|您(?:需要|应该|可以|要)|记住|一直|尽力|保证",
        ),
        r"请(?!稍)|[您你](?:能|可以|想|要|希望)|需要我|要我",
        r"(?:好的[，,])?请?(?:您)?稍(?:等|候)(?:一下|片刻|一会儿?)?|等一下|等我一下",
    ),
    Language(
        "ja",
        (
            r"(?:いま|今|これ)(?:から|より)(?!でも)[^。は]*ます|(?:ただいま|只今)[、,]?[^。は]*(?:します|いたします)",
            rf"{_JA_DO}(?:を(?:開始|実施|行))?(?:い)?(?:します|いたします|してみます|していきます|していまいります|してまいります|します ね|を始めます|しています|中です|に移ります|に入ります){_JA_END}",
            rf"(?:調べ|見|読ん|読み込ん|試し|探し|開い|書い|直し|やっ|進め|始め|まとめ)て(?:み|いき|おき|まいり)ます{_JA_END}",
            rf"を(?:調べ|見|読み|試し|探し|開き|書き|直し|始め|進め|行い|まとめ|作り|送り)ます{_JA_END}",
            rf"^(?:それでは|では|次に|続いて|さっそく|早速|続けて)[、,]?[^。は]*(?<!ござい)(?<!あり)(?<!思い)(?<!でき)(?<!なり)(?<!願い)ます{_JA_END}",
            rf"(?:{_JA_DO}|見|調べ|読ま|試)(?:さ)?せて(?:ください|いただきます|もらいます){_JA_END}",
            rf"(?:取り掛かり|取りかかり|とりかかり|着手し|対応し)ます{_JA_END}|を?(?:続け|進め|急ぎ)ます{_JA_END}|(?:に|へ)(?:進み|移り|入り)ます{_JA_END}",
        ),
        (
            r"もし|場合|たら|れば|なら|でしたら|(?<!せて)ください|ましょうか|ますか|いつでも|こともでき|できます|しません|今後|明日|後ほど|ました|ときは|すると|おすすめ|お勧め|理解して|いただけ|次第",
            r"(?<![でにと私僕])は(?!まず|い[、。])",
        ),
        r"(?:送って|教えて|共有して|貼って)?(?<!せて)ください(?<!お待ちください)|ますか",
        r"少々お待ちください|少しお待ちください|お待ちください",
    ),
    Language(
        "ko",
        (
            r"(?<!알)(?<!돕)(?<!좋)(?<!감사하)(?<!모르)겠습니다[.:…! ]*$|(?:[을를]게요|[가-힣]게요)[.:…! ]*$",
            rf"(?:지금|이제|바로|먼저|다음으로|계속해서|곧바로).*{_KO_DO}(?:을|를)?\s?(?:합니다|시작합니다|진행합니다|갑니다|봅니다)[.:…! ]*$",
            r"(?:계속합니다|이어갑니다|시작합니다|진행합니다|넘어갑니다|착수합니다|실행합니다)[:…]+\s*$",
            r"(?:하는|하고 있는|보는|찾는|만드는|읽는|쓰는|여는) 중(?:입니다|이에요)[.:…! ]*$",
            rf"{_KO_DO}\S*\s?있습니다\s?{_DOTS}",
        ),
        (
            r"(?:시|하|이|있으|없으|려|되|말씀하시|주시)면|다면|라면|경우|언제든|내일|나중에|앞으로는|항상|절대",
            r"알려 ?주|수 있|기다리겠|도와드리겠|도움이 되|좋겠|감사|필요한 것|원하|생각하|기억하겠|설명하겠|설명드리겠",
        ),
        r"(?:보내|알려|공유해|입력해|붙여넣어) ?주|주시겠|할까요|을까요|어느|어떤",
        r"(?:잠시만|잠깐만|조금만)(?:요)?(?: 기다려 ?주세요)?|기다려 ?주세요",
    ),
)
