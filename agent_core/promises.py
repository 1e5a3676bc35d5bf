"""Finds a reply that announces an action of the model's own and stops. Pure, without a model call.

Theory. A reply that ends with "Now dispatching task 5:" and has no tool call has not done what it says; the turn must not pass
for answered. Only the end counts: the last sentence of the last line (and, if that only asks for patience, the one before).

It is an announcement if one of a language's `announcing` patterns is found in it and none of that language's `otherwise`
patterns (courtesies, offers, conditions, other times). It is none if it asks, is quoted, comes after a request to the person,
or if the reply ends in a list, a heading, a quotation, a table or code. A colon that has content after it is followed by
that content, so the announcement is not the end.

The patterns are data: `LANGUAGES` has one row for each. They prefer silence: a missed announcement is an answer that says
too much, a false one costs a step. Time is linear: beyond counting code fences, at most `LOOK_BACK_CHARS` are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

LOOK_BACK_CHARS = 400
"""A last line of more is a paragraph: only sentences that begin within this many characters of the end are read."""


@dataclass(frozen=True, slots=True)
class Language:
    """One language's words. Patterns are searched in the sentence in lower case, with plain apostrophes and no emphasis."""

    code: str
    announcing: tuple[str, ...]
    otherwise: tuple[str, ...]
    requests: str = ""
    """Words by which the sentence before asks the person for something: then the next action waits for them."""
    patience: str = ""
    """A sentence that only asks to wait. It announces something by itself."""


def _words(text: str) -> str:
    """A pattern for any one of the words, each of which may be a pattern; a tilde stands for a space in one."""
    return f"(?:{'|'.join(text.split())})".replace("~", " ")


_EN_DO = _words(
    "check look take~an?~(?:\\w+~)?look have~a~look read open run re-?run execute search find fetch get pull grab start begin "
    "proceed continue go~ahead create write update edit fix apply add remove delete install test verify validate confirm inspect "
    "examine review analy[sz]e investigate explore scan list query call invoke dispatch send build compile deploy download upload "
    "load parse process generate make implement refactor try retry set~up configure move~on rename copy commit push clone dig "
    "gather collect compare calculate compute prepare draft convert extract restart launch schedule switch work handle "
    "double-?check figure~out locate save store merge patch debug trace measure visit browse navigate do~(?:that|this|it|so) "
    "see~(?:what|if|whether|how|which|why)(?:'s)? get~started kick~off spin~up spawn delegate translate rewrite put~together retrieve trigger "
    "submit tackle correct adjust modify replace clean~up take~care use"
)
_EN_DOING = _words(
    "checking looking~(?:into|at|up|for|through) reading opening running re-?running executing searching fetching getting pulling "
    "grabbing starting beginning proceeding continuing creating writing updating editing fixing applying adding removing deleting "
    "installing testing verifying validating inspecting examining reviewing analy[sz]ing investigating exploring scanning listing "
    "querying calling invoking dispatching sending building compiling deploying downloading uploading loading parsing processing "
    "generating making implementing refactoring trying retrying setting~up configuring moving~(?:on|to) working~on gathering "
    "collecting comparing calculating preparing drafting converting extracting restarting launching switching delegating "
    "kicking~off spawning retrieving submitting handling tackling saving"
)
_EN_LEAD = (  # every way through it is decided by its first word: no search among many
    r"^(?:(?:(?:ok|okay|sure|great|good|perfect|right|alright|all right|understood|got it|thanks|yes|and|so|now|next|first|then|"
    r"finally|one moment|hold on|meanwhile|sounds good|of course|certainly|absolutely|no problem|thank you)(?: please)?[\s,.!:–—-]|"
    r"(?:to|for|based on|given|since|as|after|with) [^,.?!]{1,80}+,)[\s,.!:–—-]*+){0,5}"
)
_EN_HOW = r"(?:(?:now|first|next|just|quickly|also|then|start by|begin by|immediately|go ahead and|try to) )*"
_EN_I_WILL = r"i(?:'ll| will|'m going to| am going to|'m gonna|'m about to| am about to)"
_EN_BREAK = r"(?:^|[,;:–—]\s*|\s-\s)(?:(?:so|and|but|now|first|then|next),? )*"

_DE_DO = _words(
    "schaue? sehe? prüfe überprüfe starte führe öffne lese suche beginne fange erstelle schreibe aktualisiere teste rufe hole lade "
    "installiere behebe kümmere korrigiere analysiere untersuche mache lege ändere durchsuche sende schicke baue füge entferne lösche"
)
_ES_DO = _words(
    "revis\\w+ comprob\\w+ comprueb\\w+ verific\\w+ ejecut\\w+ busc\\w+ le[oe]\\w* crea\\w* crear escrib\\w+ actualiz\\w+ abr\\w+ inici\\w+ "
    "empez\\w+ empiez\\w+ comenz\\w+ comienz\\w+ mir\\w+ ver instal\\w+ corr\\w+ prob\\w+ prueb\\w+ consult\\w+ analiz\\w+ gener\\w+ hacer\\w* "
    "lanz\\w+ examin\\w+ envi\\w+ prepar\\w+ modific\\w+ arregl\\w+ a\u00f1ad\\w+ agreg\\w+ elimin\\w+ borr\\w+ descarg\\w+ investig\\w+"
)
_ES_I_DO = _words(
    "reviso compruebo verifico ejecuto busco leo creo escribo actualizo abro inicio empiezo comienzo instalo pruebo consulto analizo "
    "genero hago lanzo examino envío preparo modifico arreglo añado agrego elimino descargo investigo"
)
_FR_DO = _words(
    "vérifie\\w* lanc\\w+ regard\\w+ consult\\w+ cherch\\w+ recherch\\w+ lis lire crée\\w* écri\\w+ exécut\\w+ ouvr\\w+ commenc\\w+ démarr\\w+ "
    "install\\w+ corrig\\w+ analys\\w+ examin\\w+ génér\\w+ prépar\\w+ mets mettre modifi\\w+ test\\w+ procéd\\w+ envo\\w+ ajout\\w+ "
    "supprim\\w+ télécharg\\w+ explor\\w+ récupér\\w+ faire voir essay\\w+ inspect\\w+"
)
_PT_DO = _words(
    "dar verific\\w+ confer\\w+ execut\\w+ cri\\w+ le[ri]\\w* busc\\w+ procur\\w+ escrev\\w+ atualiz\\w+ abr\\w+ inici\\w+ começ\\w+ olh\\w+ ver instal\\w+ "
    "rod\\w+ test\\w+ consult\\w+ analis\\w+ ger\\w+ faz\\w+ corrig\\w+ envi\\w+ prepar\\w+ modific\\w+ adicion\\w+ remov\\w+ baix\\w+ "
    "investig\\w+ examin\\w+ pesquis\\w+ checar"
)
_IT_DO = _words(
    "controll\\w+ verific\\w+ esegu\\w+ cerc\\w+ legg\\w+ cre[oa]\\w* scriv\\w+ aggiorn\\w+ apr\\w+ avvi\\w+ inizi\\w+ cominci\\w+ guard\\w+ "
    "vede\\w+ install\\w+ prov\\w+ test\\w+ consult\\w+ analizz\\w+ gener\\w+ lanci\\w+ corregg\\w+ prepar\\w+ invi\\w+ modific\\w+ aggiung\\w+ "
    "rimuov\\w+ scaric\\w+ esamin\\w+ proced\\w+ far\\w+ dare dai"
)
_NL_DO = _words(
    "controleer bekijk kijk zoek lees start voer open schrijf maak begin test haal installeer werk pas update analyseer onderzoek "
    "verwijder voeg stuur download genereer bouw roep check ga"
)
_PL_DO = _words(
    "sprawdzę przejrzę uruchomię przeczytam poszukam wyszukam znajdę otworzę utworzę stworzę napiszę zaktualizuję zainstaluję "
    "przetestuję zacznę rozpocznę naprawię poprawię zobaczę obejrzę wykonam wygeneruję przygotuję pobiorę wyślę usunę dodam "
    "przeanalizuję zbadam zajmę spojrzę zrobię"
)
_PL_DOING = _words(
    "sprawdzam uruchamiam czytam szukam otwieram tworzę piszę aktualizuję instaluję testuję zaczynam rozpoczynam przechodzę"
)
_RU_DO = _words(
    "проверю посмотрю запущу прочитаю прочту найду поищу открою создам напишу обновлю установлю протестирую начну исправлю выполню "
    "сгенерирую подготовлю скачаю загружу отправлю удалю добавлю проанализирую изучу сделаю просмотрю займусь перейду соберу"
)
_RU_DOING = _words(
    "проверяю смотрю запускаю читаю ищу открываю создаю пишу обновляю устанавливаю тестирую начинаю приступаю перехожу выполняю"
)
_ZH_DO = _words(
    "检查 查看 查询 查找 查一 看看 看一 读取 阅读 打开 运行 执行 搜索 搜一 创建 编写 写入 更新 修改 修复 开始 生成 安装 测试 分析 调用 处理 "
    "获取 下载 上传 启动 构建 部署 验证 确认 继续 尝试 准备 整理 收集 浏览 添加 删除 试试 试一"
)
_JA_DO = _words(
    "確認 実行 調査 検索 作成 更新 修正 開始 分析 取得 検証 テスト 追加 削除 インストール ダウンロード 生成 起動 チェック 準備 着手 再実行 解析 処理"
)

LANGUAGES: tuple[Language, ...] = (
    Language(
        "en",
        (
            rf"{_EN_BREAK}let me {_EN_HOW}{_EN_DO}\b",
            rf"{_EN_LEAD}(?:now )?{_EN_I_WILL} {_EN_HOW}{_EN_DO}\b",
            rf"(?:[;–—]\s*|, (?:so|and|but) ){_EN_I_WILL} {_EN_HOW}{_EN_DO}\b",
            rf"\bi(?:'ll| will) now {_EN_HOW}{_EN_DO}\b",
            rf"(?:{_EN_LEAD}|, (?:so|and) )i(?:'m| am) (?:now |currently |just |still )?{_EN_DOING}\b",
            rf"{_EN_LEAD}(?:now|next),? {_EN_DOING}\b",
            rf"{_EN_LEAD}{_EN_DOING}\b.*(?::|…|\.\.\.| now[.!]*)$",
            r"^(?:proceeding|moving on|continuing)\b[^,]*$",
            r"^(?:on it|working on (?:it|this|that))(?: now)?\W*$",
            r"^(?:now,? )?on ?to (?:the next|task|step|phase|part)\b",
            rf"{_EN_LEAD}(?:it's )?time to {_EN_DO}\b",
            rf"{_EN_LEAD}now to {_EN_DO}\b.*[:…]$",
            rf"{_EN_LEAD}i (?:need|have) to {_EN_HOW}{_EN_DO}\b.*(?:\b(?:first|now)\W*|:)$",
            rf"{_EN_LEAD}let's {_EN_HOW}(?:check|look|read|run|see (?:what|if|how)|verify|inspect|dig|search|open|examine|fix|create the|write the|update the)\b",
        ),
        (
            r"\blet me know\b",
            r"(?<!check )(?<!see )(?<!verify )\bif (?:you|needed|necessary|desired|(?:that|this) (?:works for|is ok|is fine))\b",
            r"\b(?:once|when|whenever|after|as soon as|until|unless) you\b|\bunless\b|\bjust say\b|\bsay the word\b",
            r"\byour (?:permission|approval|ok|okay|go-ahead|confirmation|decision|reply|answer)\b",
            r"\b(?:from now on|going forward|in (?:the )?future|next time|tomorrow|tonight|later|every (?:day|week|hour|morning))\b",
            r"\b(?:not|never|always|do my best|make sure|be happy|be glad|try to (?:be|keep))\b",
            r"^(?:please |just )?(?:tell|send|share|paste|give|provide|confirm|upload|let me have|reply|pick|choose|drop|attach)\b.*\bi(?:'ll| will)\b",
            r"\brunning (?:on|as|at|in|with|version|low|out)\b|\bdon't let me\b|\bi can\b|\bi could\b",
        ),
        r"\b(?:please(?! (?:wait|hold|stand|bear|be patient))|(?:could|can|would|will|do|did|have|are) you|which (?:one|of|file)|shall i|"
        r"should i|want me|(?:send|tell|give|show) me|share|paste|upload|attach)\b",
        r"(?:just )?(?:one|a) (?:moment|second|sec|minute)(?: please)?|please (?:wait|hold on|stand by|bear with me)(?: a moment| a second)?|"
        r"hold on|bear with me|stand by|hang on(?: a (?:second|moment))?",
    ),
    Language(
        "de",
        (
            rf"(?:^|[,;:–—]\s*|\b(?:und|dann|nun|jetzt) )ich (?:werde|{_DE_DO})\b(?!.*\bdass\b)",
            (
                rf"(?:^|[,;:–—]\s*)(?:(?:ok|okay|gut|so),? )?(?:jetzt|nun|dann|als nächstes|zuerst|zunächst|gleich|danach|anschließend) "
                rf"(?:werde|{_DE_DO}) ich\b"
            ),
            r"\b(?:lass|lassen sie) mich (?!wissen)\w",
        ),
        (
            r"\b(?:wenn|falls|sobald|sofern) (?:du|sie|ihr|das|es|nötig|gewünscht)\b|\b(?:sag|sagen sie|gib|geben sie) (?:mir )?(?:einfach )?bescheid\b",
            r"\b(?:gern|gerne|nie|niemals|nicht|künftig|in zukunft|ab sofort|morgen|später|ich kann|ich könnte|soll ich)\b",
            r"^(?:bitte )?(?:schick|schicke|schicken sie|sende|senden sie|gib|geben sie|nenne|nennen sie|zeig|zeige|teile|lade)\b",
        ),
        r"\b(?:bitte(?! warten)|könntest|kannst|können sie|könnten sie|möchtest|möchten sie|soll ich|welche[rsn]?|schick|sende mir)\b",
        r"(?:einen|ein) (?:moment|augenblick)(?: bitte)?|moment(?: bitte)?|bitte (?:einen moment )?warten",
    ),
    Language(
        "es",
        (
            rf"(?:^|[,;:–—.]\s*|\b(?:y|así que|ahora|primero|entonces) )(?:ahora )?(?:voy a|vamos a|procedo a|procederé a|paso a) (?:\w+ )?{_ES_DO}\b",
            rf"(?:^|[,;:–—]\s*|\bahora )(?:déj[ae]me|dejame|permíteme|permítame|permítanme) (?:\w+ )?{_ES_DO}\b",
            rf"^(?:\w+, )?(?:(?:ahora|ahora mismo|primero|a continuación),? (?:me pongo a )?)?{_ES_I_DO}\b(?! que)",
            r"^(?:\w+, )?(?:estoy )?\w+(?:ando|iendo|yendo) .*(?:…|\.\.\.|:|\bahora\W*)$",
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
            rf"(?:^|[,;:–—.]\s*|\b(?:et|donc|maintenant|d'abord|ensuite) )je vais (?:(?!être|bien)\S+ ){{0,3}}{_FR_DO}\b",
            rf"(?:^|[,;:–—]\s*|\b(?:maintenant|d'abord) )(?:laissez|laisse|permettez|permets)-moi (?:de |d')?(?:\S+ ){{0,2}}{_FR_DO}\b",
            rf"(?:^|[,;:–—]\s*|\b(?:maintenant|ensuite|d'abord) )je (?:l'|le |la |les )?{_FR_DO}\b",
            r"\bje m'(?:en occupe|apprête à)\b|^je (?:procède|passe) (?:à|au|maintenant)\b",
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
            rf"(?:^|[,;:–—.]\s*|\b(?:e|então|agora|primeiro) )(?:eu )?vou (?:(?:agora|primeiro|já|começar a) )*{_PT_DO}\b",
            rf"(?:^|[,;:–—]\s*|\bagora )(?:deixe-me|deixa-me|deixa eu|deixe eu|permita-me) (?:\w+ )?{_PT_DO}\b",
            r"^(?:\w+, )?(?:estou )?\w+(?:ando|endo|indo) .*(?:…|\.\.\.|:|\bagora\W*)$",
            r"\bestou (?:verificando|executando|criando|buscando|analisando|lendo|rodando)\b",
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
            rf"(?:^|[,;:–—.]\s*|\b(?:e|quindi|allora) )(?:ora|adesso|prima|poi|subito),? (?:(?:lo|la|li|le|mi) )?{_IT_DO}(?<!a)(?<!i)(?<!e)(?<!are)(?<!ere)\b",
            rf"(?:^|[,;:–—]\s*|\b(?:ora|adesso|prima) )(?:fammi|lasciami|mi lasci|permettimi di|mi permetta di) (?:\w+ )?{_IT_DO}\b",
            r"(?:^|[,;:–—]\s*|\b(?:ora|adesso) )(?:vado a|sto per|procedo (?:a|ad|con)|inizio (?:a|con|da)) ?",
            r"^(?:\w+(?: \w+)?, )?(?:controllo|verifico|eseguo|cerco|leggo) (?:subito |ora |adesso )?(?:il|lo|la|i|gli|le|l'|subito|ora|adesso|nel|nei)",
            r"^(?:sto )?\w+(?:ando|endo) .*(?:…|\.\.\.|:)$|\bsto (?:controllando|verificando|eseguendo|cercando|creando|leggendo)\b",
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
            rf"(?:^|[,;:–—]\s*|\b(?:en|dan|nu|eerst) )ik (?:zal|{_NL_DO})\b",
            rf"(?:^|[,;:–—]\s*)(?:(?:oké|goed),? )?(?:nu|dan|eerst|vervolgens|daarna|hierna) (?:ga|zal|{_NL_DO}) ik\b",
            r"(?:^|[,;:–—]\s*)laa?t (?:me|mij|ik) (?!(?:het )?weten)(?:\w+ ){0,6}\w+en\b",
        ),
        (
            r"\b(?:als|indien|zodra|wanneer|mocht) (?:je|u|dat|nodig)\b|\blaat (?:het )?(?:me|mij) (?:het )?weten\b",
            r"\b(?:graag|nooit|niet|morgen|later|voortaan|ik kan|ik zou)\b",
            r"^(?:stuur|deel|geef)(?: me| mij)?\b",
        ),
        r"\b(?:alsjeblieft|alstublieft|kun je|kunt u|wil je|wilt u|zal ik|stuur|deel|welke?)\b",
        r"(?:een|één) (?:moment|ogenblik)(?: geduld)?(?: (?:alsjeblieft|alstublieft|a\.u\.b))?|momentje",
    ),
    Language(
        "pl",
        (
            rf"(?:^|[,;:–—]\s*)(?:(?:dobrze|ok|okej|jasne|świetnie)[,.]? )?(?:(?:teraz|zaraz|najpierw|następnie|za chwilę|już|od razu|szybko|więc|ja) )*(?:{_PL_DO}|{_PL_DOING})\b",
            r"\bpozwól(?:cie)?,? że\b|\bzamierzam teraz\b|\bprzystępuję do\b",
        ),
        (
            r"\b(?:jeśli|jeżeli|gdy|gdyby|kiedy|jak tylko|dopóki)\b|\bdaj(?:cie)? (?:mi )?znać\b",
            r"\b(?:nigdy|nie|jutro|później|mogę|mógłbym|chętnie)\b",
            r"^(?:proszę )?(?:wyślij|prześlij|podaj|wklej|udostępnij)\b",
        ),
        r"\b(?:proszę(?! (?:czekać|poczekać))|możesz|czy mam|czy chcesz|wyślij|prześlij|podaj|wklej|który|którą)\b",
        r"(?:chwileczkę|moment|chwilę|proszę (?:czekać|poczekać)|jedną chwilę)(?:,? proszę)?",
    ),
    Language(
        "ru",
        (
            rf"(?:^|[,;:–—]\s*)(?:(?:хорошо|ладно|отлично|окей|понял|поняла|да)[,.!]? )?(?:(?:сейчас|теперь|сначала|затем|далее|потом|дальше|сразу|быстро|давайте|давай|я|тогда|ещё|же) )*(?:{_RU_DO}|{_RU_DOING})\b",
            r"\b(?:позвольте|позволь)(?: мне)? \w+ть\b|\b(?:сейчас|теперь) (?:я )?буду \w+ть\b|^(?:сейчас |теперь )?я собираюсь\b",
        ),
        (
            r"\b(?:если|когда вы|когда ты|как только|после того как)\b|\bдайте? (?:мне )?знать\b|\bсообщите\b",
            r"\b(?:никогда|не|завтра|позже|могу|мог бы|могла бы|впредь|с удовольствием)\b",
            r"^(?:пожалуйста,? )?(?:пришлите?|отправьте?|скиньте?|укажите?|вставьте?)\b",
        ),
        r"\b(?:пожалуйста(?!,? подожд)|можете|можешь|хотите|хочешь|пришлите?|отправьте|скиньте?|укажите|какой|какую)\b",
        r"(?:одну )?(?:минуту|минутку|секунду|секундочку)|один момент|подождите(?:,? пожалуйста)?",
    ),
    Language(
        "zh",
        (
            rf"(?:让我|我来|我先|我会|我将|我现在|我马上|我这就|我去|我再|我接着|我要|我需要先)(?:们)?(?:[^，。,；]{{0,6}})?{_ZH_DO}",
            rf"(?:^|[，。、])(?:现在|接下来|下面|马上|首先|然后|下一步)[，,]?(?:我|就|将|先|来|开始|会|要)*{_ZH_DO}[^，。]*[。：:…]+$",
            rf"^(?:好的[，,。！!])?正在{_ZH_DO}",
        ),
        (
            r"如果|若|假如|要是|只要|一旦|等您|等你|告诉我|随时|的话|可以|能够|不会|以后|今后|明天|稍后|已经|已|了。$|吗|请你|请您|之后我|后我",
        ),
        r"请(?!稍)|[您你](?:能|可以|想|要|希望)|需要我|要我",
        r"(?:好的[，,])?请?(?:您)?稍(?:等|候)(?:一下|片刻|一会儿?)?|等一下|等我一下",
    ),
    Language(
        "ja",
        (
            r"(?:いま|今|これ)(?:から|より)(?!でも)[^。は]*ます|(?:ただいま|只今)[、,]?[^。は]*(?:します|いたします)",
            rf"{_JA_DO}(?:を(?:開始|実施|行))?(?:い)?(?:します|いたします|してみます|していきます|していまいります|してまいります|します ね|を始めます|しています|中です)(?:ね)?[。：:…\s]*$",
            r"(?:調べ|見|読ん|読み込ん|試し|探し|開い|書い|直し|やっ)て(?:み|いき|おき)ます(?:ね)?[。：:…\s]*$",
            r"(?:を)(?:調べ|見|読み|試し|探し|開き|書き|直し|始め)ます(?:ね)?[。：:…\s]*$",
        ),
        (
            r"もし|場合|たら|れば|なら|でしたら|ください|ましょうか|ますか|いつでも|こともでき|できます|しません|今後|明日|後ほど|ました|ときは|すると",
            r"(?<![でにと私僕])は(?!まず|い[、。])",
        ),
        r"(?:送って|教えて|共有して|貼って)?ください(?<!お待ちください)|ますか",
        r"少々お待ちください|少しお待ちください|お待ちください",
    ),
)


def _any_of(patterns: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns))


_TABLE = tuple((_any_of(language.announcing), _any_of(language.otherwise)) for language in LANGUAGES)
_REQUESTS = _any_of(language.requests for language in LANGUAGES)
_PATIENCE = re.compile(rf"(?:{'|'.join(language.patience for language in LANGUAGES)})\W*")

_SENTENCE_END = re.compile(r"(?<=[.!?…])\s+(?=[^\sa-zà-þа-я(])|(?<=[。！？])")
_NO_SENTENCE = re.compile(r"\s*(?:[-*+•|>#]\s|\d+[.)]\s|[|>]|```|~~~|</|\$\$)|.*(?:```|\||</\w+>)\s*$")
_EDGES = " \t*_~`\"'“”„«»"
_QUOTES = ('"', "”", "“", "»", "'", "’", "」", "』")
_MID_COLON = re.compile(r"(?::\s+|：\s*)\S")


def announced_action(text: str) -> str | None:
    """The sentence at the end of a reply that announces an action of the model's own; None if there is none.

    The sentence is given as the model wrote it, without emphasis around it, at most `LOOK_BACK_CHARS` long.
    """
    sentences = _last_sentences(text)
    if not sentences:
        return None
    last, before = sentences[-1], sentences[-2] if len(sentences) > 1 else ""
    if last.endswith(_QUOTES) or _plain(last).endswith(("?", "？", "か。")):
        return None
    if _PATIENCE.fullmatch(_plain(last)):
        return before.strip(_EDGES) if _announces(before) else last.strip(_EDGES)
    if not _announces(last) or (before and _REQUESTS.search(_plain(before))):
        return None
    return last.strip(_EDGES)


def _last_sentences(text: str) -> list[str]:
    """The sentences of the last line, none if that is no prose."""
    tail = text[-2 * LOOK_BACK_CHARS :].rstrip()
    if not tail or text.count("```") % 2:
        return []
    line = tail[tail.rfind("\n") + 1 :]
    if _NO_SENTENCE.match(line):
        return []
    sentences = [part.strip() for part in _SENTENCE_END.split(line) if part.strip()]
    kept = [sentence for sentence in sentences if len(sentence) <= LOOK_BACK_CHARS]
    return kept[-2:] if kept and kept[-1] == sentences[-1] else []


def _plain(sentence: str) -> str:
    """A sentence in lower case, without emphasis, symbols at its end and typographic apostrophes."""
    text = sentence.lower().replace("’", "'").replace("*", "").strip(_EDGES)
    while text and not (text[-1].isalnum() or text[-1] in ".!?…:;,。！？：)"):
        text = text[:-1]
    return text.rstrip(_EDGES)


def _announces(sentence: str) -> bool:
    text = _plain(sentence)
    if text.endswith(("?", "？")):
        return False
    for announcing, otherwise in _TABLE:
        found = announcing.search(text)
        if found is not None and not _MID_COLON.search(text, found.end()) and not otherwise.search(text):
            return True
    return False
