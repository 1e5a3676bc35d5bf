"""Polish, Czech, Slovak, Russian, Ukrainian and Bulgarian; see `language`. The first person has endings of its own here."""

from __future__ import annotations

from agent_core.rules.promising.language import Language, but, lead

_PL_SMALL = (
    "po~południu wieczorem później wkrótce w~piątek w~poniedziałek jutro~rano dodatkowo poza~tym za~godzinę i a więc to teraz zaraz najpierw "
    "następnie potem dobrze ok okej jasne świetnie już od~razu szybko za~chwilę dlatego zatem rozumiem tak ja sam sama jeszcze też wtedy "
    "natychmiast oczywiście pewnie dzięki super dalej krok~po~kroku do~jutra jutro dziś tymczasem teraz~więc się ci wam ponownie po~kolei"
)
_PL_LEAD = lead(_PL_SMALL)
_PL_NOT = (
    "widzę domyślam pamiętam zauważam znajduję wyobrażam życzymy \\w+ł[ea]m zostawiam pozostawiam rozumiem wiem mam~(?:nadzieję|na~myśli|"
    "pytanie|wrażenie) mam jestem widzę~(?:że|tu|tylko) mogę chcę~(?:powiedzieć|tylko) muszę~(?:przyznać|powiedzieć|odmówić) myślę "
    "umiem pamiętam czekam używam proszę się trochę polecam sądzę uważam dziękuję przepraszam radzę sugeruję proponuję wolę wolałbym "
    "lubię życzę znam zakładam rekomenduję zalecam odradzam gratuluję liczę~na cieszę obawiam wierzę prawdę odpowiadam nie tę jedną "
    "szkodę chętnie powiem wyjaśnię napiszę~tylko przypominam~że twierdzę bym nazywam całość zostanę będę pozostaję chciałbym chciałabym "
    "podkreślę dodam~że potrzebuję~(?:twoj|od~ciebie|więcej|jeszcze~(?:twoj|od)) czuję am em"
)
_CS_SMALL = (
    "odpoledne večer později brzy v~pátek v~pondělí zítra~ráno navíc za~hodinu ráno a tak teď nyní hned nejdřív nejprve potom pak dobře "
    "ok jasně výborně skvěle rozumím proto takže já sám ještě také ihned okamžitě mezitím dále zítra dnes do~zítra se si ti vám to "
    "ho ji je tedy rychle samozřejmě určitě díky nejdříve zatím ale"
)
_CS_LEAD = lead(_CS_SMALL)
_CS_NOT = (
    "jsem vidím domnívám nacházím pamatuji pamatuju tuším představuji nechám nechávám přenechám přenechávám myslím doufám vím mám~(?:otázku|"
    "dojem) mám vidím~(?:že|tu|jen) rozumím umím prosím děkuji děkuju doporučuji doporučuju navrhuji navrhuju chápu věřím předpokládám "
    "omlouvám těším čekám můžu mohu chci~(?:říct|jen) nevím nemám jsem používám dávám~přednost znám gratuluji přeju přeji radím pamatuji "
    "tím problém systém celkem řeknu vysvětlím upozorňuji odpovídám obávám souhlasím považuji oceňuji budu rád ráda lituji vzkazuji "
    "mluvím ne\\w+ potřebuji~(?:od|vaš|tvoj|tvůj|vědět) tvým svým vaším mým jeho jejím prvním druhým kterým tvrdím"
)
_SK_SMALL = (
    "popoludní večer neskôr čoskoro v~piatok v~pondelok zajtra~ráno navyše o~hodinu ráno a tak teraz hneď najprv najskôr potom dobre "
    "ok jasné výborne skvelé rozumiem preto takže ja sám ešte aj okamžite medzitým ďalej zajtra dnes sa si ti vám to ho ju ich teda rýchlo "
    "samozrejme určite vďaka zatiaľ ale"
)
_SK_LEAD = lead(_SK_SMALL)
_SK_NOT = (
    "jsem vidím domnievam nachádzam tuším predstavujem prajem prajeme nechám nechávam prenechám prenechávam myslím dúfam viem mám~(?:otázku|"
    "dojem) mám vidím~(?:že|tu|len) rozumiem prosím ďakujem odporúčam navrhujem chápem verím predpokladám ospravedlňujem teším čakám "
    "môžem chcem~(?:povedať|len) neviem nemám som používam poznám gratulujem želám radím pamätám problém systém celkom poviem vysvetlím "
    "upozorňujem odpovedám obávam súhlasím považujem oceňujem budem rád rada ľutujem hovorím ne\\w+ potrebujem~(?:od|vaš|tvoj|vedieť) "
    "tým tvojím mojím program tvrdím všetkým ktorým"
)
_RU_SMALL = (
    "днём вечером позже скоро в~пятницу в~понедельник завтра~утром после~обеда кроме~того через~час утром и а но то так теперь сейчас сначала "
    "затем потом далее дальше хорошо ладно отлично окей понял поняла понятно да поэтому я ещё еще также сразу быстро конечно ясно итак тогда "
    "пока для~начала для~этого спасибо супер готово тут здесь вот давай давайте завтра сегодня немедленно уже тебе вам его её их это всё "
    "лично заодно после~этого параллельно снова сперва в~пять что~ж"
)
_RU_LEAD = lead(_RU_SMALL)
_RU_NOT = (
    "вижу нахожу замечаю вспоминаю догадываюсь представляю оставляю предоставляю думаю полагаю считаю~(?:что|это|его|её|их|нужным|важным|"
    "лучш) надеюсь могу хочу~(?:сказать|подчеркнуть|лишь|только) знаю вижу~(?:что|здесь|тут|в|только|два|три) понимаю рекомендую советую предлагаю жду прошу благодарю предпочитаю люблю помню верю сожалею извиняюсь желаю поясню объясню скажу подскажу расскажу отвечу напоминаю использую подчеркну отмечу уверяю боюсь почему потому поэтому никому всему этому тому кому между сразу снизу сверху внизу наверху по-моему одну эту ту мою твою вашу свою всю саму какую такую другую любую каждую основную последнюю первую вторую новую старую следующую имею являюсь чувствую поздравляю согласен признаю допускаю работаю~(?:как|"
    "на) буду~(?:рад|рада|ждать|здесь|на~связи|помнить) могу~ли бы не\\w* почту поминутку минуту минутку секунду секундочку сумму ошибку проблему смогу остаюсь сегодню всегда рискну хотелось понимаю утверждаю замечу~что ожидаю перехожу~на~«ты» зову живу слышу предполагаю"
)
_UK_SMALL = (
    "вдень увечері пізніше скоро в~п'ятницю у~понеділок завтра~вранці після~обіду крім~того за~годину вранці і й та а але то так тепер "
    "зараз спочатку спершу потім далі добре гаразд чудово зрозумів зрозуміла зрозуміло тому тож я ще також одразу швидко звісно отже "
    "тоді поки для~початку для~цього дякую супер готово тут ось завтра сьогодні негайно вже тобі вам його її їх це все заодно після~цього "
    "паралельно знову о~п'ятій"
)
_UK_LEAD = lead(_UK_SMALL)
_UK_NOT = (
    "бачу знаходжу помічаю пригадую здогадуюся уявляю залишаю лишаю думаю вважаю гадаю сподіваюся сподіваюсь можу хочу~(?:сказати|лише) знаю "
    "бачу~(?:що|тут|в|лише) розумію рекомендую раджу пропоную чекаю прошу дякую люблю пам'ятаю вірю шкодую перепрошую бажаю поясню скажу "
    "підкажу розповім відповім нагадую~що використовую підкреслю зауважу боюся боюсь чому тому кому йому цьому всьому між одну цю ту мою "
    "твою вашу свою всю іншу кожну нову стару наступну першу другу маю є відчуваю вітаю визнаю буду~(?:радий|рада|чекати|тут) б би не\\w* "
    "хвилину хвилинку секунду помилку зможу стверджую припускаю остаю живу чую очікую надаю~перевагу"
)
_BG_SMALL = (
    "следобед довечера вечерта по-късно скоро в~петък в~понеделник сутринта освен~това след~час и а но така сега първо след~това после "
    "добре ок ясно чудесно разбрах да затова аз още също веднага бързо разбира~се тогава междувременно благодаря супер тук ето утре днес "
    "пак отново до~утре се ти ви го я ги го~"
)
_BG_LEAD = lead(_BG_SMALL)
_BG_CLITIC = r"(?:(?:се|си|ти|ви|го|я|ги|му|й|им|ме|ми) ){0,2}+"

# what is no act in one of two neighbours is none in the other: a short sentence may be either
_WEST_NOT = f"{_CS_NOT} {_SK_NOT}"
_EAST_NOT = f"{_RU_NOT} {_UK_NOT}"

SLAVIC = (
    Language(
        "pl",
        (
            f"plik strona błąd zrobić bardzo bez przed wszystkie wszystko ta tego tej tym ale lub gdzie kiedy ponieważ być było mamy nasz wasz "
            f"pan pani komputer ponownie można trzeba przez przy tylko został została jeden nowy mnie ci mi ją ich i w na z nie to jest się do "
            f"że po od za dla co jak lub teraz jeszcze już mam jestem ten ta te są oraz czy {_PL_SMALL} {_PL_NOT}"
        ),
        "ą ę ł ż ś ź ć ń ó",
        (
            r"^(?:(?:i|teraz|dobrze|więc),? )*(?:kontynuujemy|zaczynamy|wracamy|ruszamy|jedziemy)\b",
            (
                rf"{_PL_LEAD}{but(_PL_NOT)}(?:\w+(?:ę|uję|am|em)|dam znać|będę (?:miał|miała|gotow|sprawdza|uruchamia|kontynuowa|informowa|pracowa|"
                rf"tłumaczy|szuka|pisa)\w*)\b(?! (?:że|nadzieję)\b)"
            ),
            rf"^(?:[\w ]{{2,40}}) {but(_PL_NOT)}(?:\w{{3,}}(?:dzę|szę|czę|żę|uję|obię|wię|nię|mię|lę|dę|tnę|amy))\b(?! (?:że|się,)\b)",
            (
                r"\b(?:pozwól(?:cie)?,? (?:że|mi)|pozwolę sobie|zamierzam|przystępuję|zabieram się|biorę się|muszę|potrzebuję) (?!.*\b(?:przyznać|powiedzieć|"
                r"odmówić|wiedzieć|od ciebie|twoj\w+|wyjaśnić)\b)"
            ),
            (
                r"^(?:(?:i|więc|to|teraz|dobrze|ok|dobra|no to|świetnie|potem),? )*(?:przejdźmy|przechodzimy|zobaczmy|sprawdźmy|zacznijmy|zaczynajmy|"
                r"kontynuujmy|zajrzyjmy|czas |pora |kolej na|do dzieła|już się robi|robi się|się robi|ruszam|jedziemy|dalej|na (?:początek|kolej))\b"
            ),
            r"\b(?:przypomnę|dam (?:ci |ci |wam )?znać|odezwę się|powiadomię|zadzwonię|poinformuję|napiszę (?:do|ci|wam|gdy|kiedy))\b",
            r"^trwa \w+.*(?:…|\.\.\.)$",
        ),
        (
            (
                r"\b(?:jeśli|jeżeli|gdyby|(?:gdy|kiedy|jak)(?: tylko)? (?:mi |przyśle|da(?:sz|cie)|będzie(?:sz|cie)|poda|otrzymam|dostanę|potwierdzi|"
                r"zdecyduj|zechc)|dopóki|w razie|daj(?:cie)? (?:mi )?znać|powiedz|chętnie|nigdy|mogę|mógłbym|mogłabym|w przyszłości|od teraz|bym\b|"
                r"wolałbym|mam nadzieję|czekam na|liczę na|byłoby|po tym,? jak (?:mi|prześlesz))"
            ),
            r"^(?:proszę )?(?:wyślij|prześlij|podaj|wklej|udostępnij|napisz|wybierz)\b",
        ),
        r"\b(?:proszę(?! (?:czekać|poczekać|o chwil))|możesz|czy mam|czy chcesz|wyślij|prześlij|podaj|wklej|który|którą|powiedz|daj znać)\b",
        (
            r"(?:(?:jeszcze |tylko )?(?:jedną |jedna )?(?:chwileczkę|moment|momencik|chwilę|chwilkę|sekundę|sekundkę|minutę|minutkę)(?:,? proszę)?|"
            r"proszę (?:czekać|poczekać|o chwilę).*|zaczekaj.*|poczekaj.*|zaraz wracam|to (?:może|potrwa).*|dziękuję za cierpliwość)"
        ),
        r"^(?:(?:i|teraz),? )*(?:następn[yae](?: \w+)?|teraz|dalej|kolej na): \S",
        when=r"\b(?:gdy|jak) tylko\b|(?:^|, )(?:gdy|kiedy|jeśli|jeżeli)\b",
    ),
    Language(
        "cs",
        (
            f"soubor stránka chyba udělat velmi bez před všechny všechno tento tato toto tomu ale nebo kde kdy protože být bylo máme náš váš počítač "
            f"znovu můžete lze přes při jen byla jeden nový mi mě ti ho ji jich ten ta krok další které která dokument tím a v na z je to se že "
            f"do pro s i o k co jak nebo teď už jsem si ale tak který jsou byl aby podle není po za {_CS_SMALL} {_CS_NOT}"
        ),
        "ě ř ů č ž š ý ť ď á í é ú ň ó",
        (
            (
                rf"{_CS_LEAD}(?!\w+ou\b){but(_WEST_NOT + ' tomu němu domu jednu tuto celou problému systému obsahu proto jejímu svému')}\w{{3,}}u\b(?! (?:je|"
                rf"jsou|byl|bude)\b)|^\S+ (?:se|si|ti|vám|to|ho|ji) {but(_WEST_NOT)}\w+(?:ám|ím|u|uji|eji)\b|^(?:\w+ )?(?:pokračujeme|začínáme|"
                rf"jdeme|vracíme)\b"
            ),
            rf"{_CS_LEAD}{but(_WEST_NOT)}(?:\w+(?:ám|ím|uji|uju|nu|du|žu|šu|ču|řu|eju|ěju|hu|ju|ku|lu)|dám vědět|přeložím)\b(?!,? že\b)",
            (
                rf"^(?:v|ve|do|od|o|k|za|po|na|s|ze|z)\s(?:\S+ ){{1,3}}(?:ti |vám |vás |tě |se |si |to |ho )*{but(_WEST_NOT)}(?:\w{{2,}}(?:ám|"
                rf"ím|uji|uju|nu|du|žu|šu|ču))\b|\bbudu mít .*hotov"
            ),
            (
                r"\b(?:budu (?:muset|pokračovat|potřebovat|hledat|pracovat|kontrolovat|sledovat|testovat|informovat))(?! (?:od|vaš|tvoj|tvůj|vědět))|"
                r"\b(?:musím|potřebuji|potřebuju|chci|hodlám|zkusím|jdu|chystám se|si potřebuji) (?!.*\b(?:přiznat|říct|říci|odmítnout|vědět|od (?:tebe|"
                r"vás)|vaš\w+|tvoj\w+|tvůj|vysvětlit|poděkovat|upozornit|jen)\b)\w+"
            ),
            r"\b(?:dovol(?:te)?(?: mi)?|nech(?:te|)? mě)\b(?! (?:vědět|vysvětlit|říct))",
            (
                r"^(?:(?:a|tak|teď|nyní|dobře|ok|no|potom|pak|jasně),? )*(?:přejděme|přejdeme|pojďme|podívejme|zkusme|začněme|pokračujme|je čas|čas |"
                r"na řadě|jde se na|jdu na|(?!jsme|máme|víme|můžeme|chceme|bychom|budeme mít|nemáme|jméno|téma|tohle|nejsme|systéme)\w+[cdďfjlmnňprřsštťvzž]me |"
                r"hned to|pracuji na|pouštím se|dáme se|jedeme dál|dál )"
            ),
            r"\b(?:připomenu|dám (?:ti |vám )?vědět|ozvu se|upozorním|zavolám|napíšu (?:ti|vám|až))\b",
            r"^(?:probíhá|načítání|hledání|spouštění) .*(?:…|\.\.\.)$",
        ),
        (
            (
                r"\b(?:pokud|jestli(?:že)? (?:chce|bude|potřebuje|máš|máte)|kdyby|jakmile (?:mi|dostanu|budeš|budete|pošle|máš|obdrž)|až (?:mi|budeš|"
                r"budete|pošle|se rozhodne)|když (?:mi|budeš|chceš)|dej(?:te)? (?:mi )?vědět|řekn[iě]|řekněte|pošl(?:i|ete)|rád|ráda|těším|doufám|"
                r"nikdy|můžu|mohu|mohl|příště|v budoucnu|od teď|bych|kdykoli|neváhej|v případě)\b"
            ),
        ),
        r"\b(?:prosím(?! (?:čekej|počkej|o chvil|vydrž))|můžeš|můžete|mám |chceš|chcete|pošli|pošlete|který|kterou|řekni|dej vědět)\b",
        (
            r"(?:(?:ještě |jen )?(?:okamžik|okamžiček|moment|momentík|chvilku|chviličku|chvíli|vteřinku|sekundu|minutku)(?:,? prosím)?|počkej.*|počkejte.*|"
            r"vydrž.*|hned jsem zpět|(?:může|bude) to (?:chvíli )?trvat.*|děkuji za trpělivost)"
        ),
        r"^(?:(?:a|teď|nyní),? )*(?:další(?: \w+)?|dále|následuje|na řadě je): \S",
        when=r"\bjakmile\b|(?:^|, )(?:až|když|pokud|jestli)\b",
    ),
    Language(
        "sk",
        (
            f"súbor stránka chyba urobiť veľmi bez pred všetky všetko tento táto toto tomu ale alebo kde kedy pretože byť bolo máme náš váš počítač "
            f"znova môžete možno cez pri len bola jeden nový mi ma ti ho ju ich ten tá krok ďalší ktoré ktorá dokument tým a v na z je to sa že "
            f"do pre s i o k čo ako alebo teraz už som si ale tak ktorý sú bol aby podľa nie po za {_SK_SMALL} {_SK_NOT}"
        ),
        "ľ ĺ ŕ ô ä č ž š ť ď á í é ú ý ň ó",
        (
            (
                rf"{_SK_LEAD}(?!jednim|nim){but(_WEST_NOT)}\w{{3,}}im\b|^\S+ (?:sa|si|ti|vám|to|ho|ju) {but(_WEST_NOT)}\w+(?:ám|"
                rf"ím|im|em|am)\b|^(?:\w+ )?(?:pokračujeme|začíname|ideme|vraciame)\b"
            ),
            rf"{_SK_LEAD}{but(_WEST_NOT)}(?:\w+(?:ám|ím|iam|iem|jem|nem|žem|šem|dem|em|čem)|dám vedieť)\b(?!,? že\b)",
            (
                rf"^(?:v|vo|do|od|o|k|za|po|na|s|zo|z)\s(?:\S+ ){{1,3}}(?:ti |vám |vás |ťa |sa |si |to |ho )*{but(_WEST_NOT)}(?:\w{{2,}}(?:ám|"
                rf"ím|iem|jem|nem|žem|šem|dem))\b|\bbudem mať .*hotov"
            ),
            (
                r"\b(?:budem (?:musieť|pokračovať|hľadať|pracovať|kontrolovať|sledovať|testovať|informovať))|\b(?:musím|potrebujem|chcem|hodlám|skúsim|"
                r"idem|chystám sa|si potrebujem) (?!.*\b(?:priznať|povedať|odmietnuť|vedieť|od (?:teba|vás)|vaš\w+|tvoj\w+|vysvetliť|poďakovať|upozorniť|"
                r"len)\b)\w+"
            ),
            r"\b(?:dovoľ(?:te)?(?: mi)?|nechaj(?:te)? ma)\b(?! (?:vedieť|vysvetliť|povedať))",
            (
                r"^(?:(?:a|tak|teraz|dobre|ok|no|potom|jasné),? )*(?:prejdime|prejdeme|poďme|pozrime|skúsme|začnime|pokračujme|je čas|čas |na rade|"
                r"ide sa na|idem na|(?!sme|máme|vieme|môžeme|chceme|nemáme|meno|nie sme)\w+[ijď]me |hneď to|pracujem na|púšťam sa|ďalej )"
            ),
            r"\b(?:pripomeniem|dám (?:ti |vám )?vedieť|ozvem sa|upozorním|zavolám|napíšem (?:ti|vám|keď))\b",
            rf"{_SK_LEAD}(?!program|tam|niekam|sám|znam){but(_WEST_NOT)}\w{{4,}}am\b",
            r"^(?:prebieha|načítanie|hľadanie|spúšťanie) .*(?:…|\.\.\.)$",
        ),
        (
            (
                r"\b(?:ak|keby|len čo (?:mi|dostanem|budeš|budete|pošle)|hneď ako (?:mi|dostanem|pošle)|keď (?:mi|budeš|budete|chceš|pošle)|daj(?:te)? (?:mi )?vedieť|"
                r"povedz(?:te)?|pošli(?:te)?|rád|rada|teším|dúfam|nikdy|môžem|mohol|nabudúce|v budúcnosti|odteraz|by som|kedykoľvek|neváhaj|v prípade)\b"
            ),
        ),
        r"\b(?:prosím(?! (?:čakaj|počkaj|o chvíľ|vydrž))|môžeš|môžete|mám |chceš|chcete|pošli|pošlite|ktorý|ktorú|povedz|daj vedieť)\b",
        (
            r"(?:(?:ešte |len )?(?:okamih|moment|momentík|chvíľku|chvíľočku|chvíľu|sekundu|minútku)(?:,? prosím)?|počkaj.*|počkajte.*|vydrž.*|hneď som späť|"
            r"(?:môže|bude) to (?:chvíľu )?trvať.*|ďakujem za trpezlivosť)"
        ),
        r"^(?:(?:a|teraz),? )*(?:ďalší(?: \w+)?|ďalšia(?: \w+)?|ďalej|nasleduje|na rade je): \S",
        when=r"\blen čo\b|\bhneď ako\b|(?:^|, )(?:keď|ak)\b",
    ),
    Language(
        "ru",
        (
            f"файл страница ошибка сделать очень без перед этот эта эти или где когда потому быть было мы наш ваш только новый два мне тебе вам "
            f"ему при через после будет есть тут работу использую и в на с не что это для я по как но вы к из у за от все так или уже если его "
            f"был мы ты можно нужно {_RU_SMALL} {_RU_NOT}"
        ),
        "ы э ё ъ",
        (
            rf"{_RU_LEAD}{but(_EAST_NOT)}\w{{2,}}(?:ю|ую|жу|чу|шу|щу|ду|му|ну|ру|лу|гу|ку|зу|су|бу|у)(?:сь)?\b(?!,? (?:что|чтобы ты|чтобы вы)\b)",
            (
                rf"(?:\bя (?:(?:сейчас|теперь|сразу|тебе|вам|его|её|ее|их|это|всё|все|ещё|лично|потом|затем|обязательно|также|тут|уже|вас|тебя|вам|сам|"
                rf"сама|быстро|снова|немедленно|тоже) ){{0,3}}+|^(?:завтра|сегодня|вечером|утром|позже|в|во|к|ко|до|через|после|на|о|об|по|с|за|из) (?:\S+ ){{1,3}}){but(_EAST_NOT)}\w{{2,}}(?:аю|"
                rf"яю|ею|ую|ою|лю|рю|ню|жу|чу|шу|щу|йду|дам|йму|ку|гу|рну|ну|ру|ью|ту)(?:сь)?\b(?!,? что\b)"
            ),
            (
                r"\b(?:позвольте|позволь|разрешите|дай(?:те)?(?:-ка)?(?: мне)?)(?: мне)?(?: \w+)? (?!знать|объяснить|пояснить|напомнить|сказать|ответ)(?:\w+ть(?:ся)?|"
                r"\w+[ую])\b"
            ),
            (
                r"\b(?:(?:мне|теперь|сначала|ещё|осталось|сперва|сейчас) (?:нужно|надо|необходимо|придётся|придется|предстоит|осталось)|(?:теперь|сначала|"
                r"сейчас|сперва|осталось) (?:\w+ )?(?:нужно|надо|осталось|стоит|посмотреть|проверить)|я (?:должен|должна|собираюсь|намерен|начну|планирую|"
                r"хочу)) (?!.*\b(?:знать|признаться|сказать|отметить|отказать|ваш\w*|тво\w+|вам|тебе)\b)\w*"
            ),
            (
                r"^(?:(?:и|так|ну|теперь|хорошо|ладно|ок|итак|тогда|а теперь|отлично),? )*(?:перейдём|перейдем|переходим|посмотрим|проверим|начнём|"
                r"начнем|продолжим|продолжаем|приступим|пора |давай(?:те)? (?!знать)\w+|за дело|уже (?:делаю|бегу|иду)|время |на очереди|поехали|"
                r"сейчас (?:сделаю|будет|всё)|дам знать|заглянем|разберёмся|попробуем)"
            ),
            r"\b(?:напомню|сообщу|позвоню|вернусь|отпишусь|извещу|уведомлю|напишу (?:тебе|вам|когда|как)|пришлю (?:тебе|вам))\b",
            r"^идёт \w+.*(?:…|\.\.\.)$|\bдам знать\b",
        ),
        (
            (
                r"\b(?:если (?:хо|вы|ты|нуж|пона|что|будет|не|да|так|это|по)|(?:как только|когда|после того,? как) (?:вы|ты|при|будешь|будете|скаж|"
                r"подтвер|реш|отправ|получу)|дайте (?:мне )?знать|дай знать|сообщите|сообщи\b|скажи(?:те)?|никогда|могу|мог бы|могла бы\b|бы\b|впредь|"
                r"с удовольствием|с радостью|рад\b|рада\b|надеюсь|жду|всегда|в будущем|обращай|при необходимости|по желанию)"
            ),
            r"^(?:пожалуйста,? )?(?:пришли(?:те)?|отправь(?:те)?|скинь(?:те)?|укажи(?:те)?|вставь(?:те)?|выбери(?:те)?|назови(?:те)?|напиши(?:те)?)\b",
        ),
        r"\b(?:пожалуйста(?!,? подожд)|можете|можешь|хотите|хочешь|пришли|пришлите|отправьте|скинь|скиньте|укажи|укажите|какой|какую|какие|скажи|скажите)\b",
        (
            r"(?:(?:ещё |ровно )?(?:одну )?(?:минуту|минутку|минуточку|секунду|секундочку|секундку)|(?:один )?момент|подожди(?:те)?.*|погоди(?:те)?.*|"
            r"сейчас вернусь|это (?:может|займёт|займет).*|спасибо за (?:терпение|ожидание))(?:,? пожалуйста)?"
        ),
        r"^(?:(?:и|а|теперь|итак),? )*(?:следующ\w+(?: \w+)?|далее|дальше|теперь|на очереди): \S",
        when=r"\bкак только\b|(?:^|, )(?:когда|если|как будет\w*)\b",
        script="cyrillic",
    ),
    Language(
        "uk",
        (
            f"файл сторінка помилка зробити дуже перед цей ця ці чи де коли бути було наш ваш тільки новий два мені тобі вам йому при через після "
            f"буде тут роботу від щоб також в на з не що це для я по як але ви до із у за від всі так або вже якщо його був ми ти можна треба та "
            f"й {_UK_SMALL} {_UK_NOT}"
        ),
        "і ї є ґ",
        (
            rf"{_UK_LEAD}{but(_EAST_NOT)}[\w']{{2,}}(?:ю|жу|чу|шу|щу|ду|му|ну|ру|лу|гу|ку|зу|су|бу|у)(?:ся|сь)?\b(?!,? що\b)",
            (
                rf"(?:\bя (?:(?:зараз|тепер|одразу|тобі|вам|його|її|їх|це|все|ще|особисто|потім|обов'язково|також|тут|вже|вас|тебе|сам|сама|швидко|знову|"
                rf"негайно|теж) ){{0,3}}+|^(?:завтра|сьогодні|увечері|вранці|пізніше|в|у|к|до|через|після|на|о|об|по|з|за|із) (?:\S+ ){{1,4}}){but(_EAST_NOT)}\w{{2,}}(?:аю|"
                rf"яю|ею|ую|лю|рю|ню|жу|чу|шу|щу|йду|дам|йму|ку|гу|рну|ну|ру|'ю|ту)(?:ся|сь)?\b(?!,? що\b)"
            ),
            r"\b(?:дозвольте|дозволь|дай(?:те)?(?:-но)?)(?: мені)?(?: \w+)? (?!знати|пояснити|нагадати|сказати)(?:\w+ти(?:ся)?|\w+[ую])\b",
            (
                r"\b(?:(?:мені|тепер|спочатку|ще|спершу|зараз) (?:потрібно|треба|необхідно|доведеться|лишилося|залишилося|належить)|я (?:маю|повинен|повинна|"
                r"мушу|збираюся|збираюсь|почну|планую|хочу)) (?!.*\b(?:знати|зізнатися|сказати|зазначити|відмовити|ваш\w*|тво\w+)\b)\w+"
            ),
            (
                r"^(?:(?:і|так|ну|тепер|добре|гаразд|ок|отже|тоді|а тепер|чудово),? )*(?:перейдімо|переходимо|перейдемо|подивімося|подивимось|перевірмо|"
                r"почнімо|продовжимо|продовжуємо|пора |час |давай(?:те)? (?!знати)\w+|до справи|вже (?:роблю|біжу)|на черзі|\w{3,}мо (?!з вами)|"
                r"гайда|поїхали|ходімо|\w+тиму(?:ся)?\b)|\b\w+тиму(?:ся)?\b(?! рад)|\bдам знати\b"
            ),
            r"\b(?:нагадаю|повідомлю|зателефоную|повернуся|відпишу|напишу (?:тобі|вам|коли)|надішлю (?:тобі|вам))\b",
            r"^триває \w+.*(?:…|\.\.\.)$",
        ),
        (
            (
                r"\b(?:якщо (?:хо|ви|ти|потр|щось|буде|не|так|це)|(?:як тільки|щойно|коли|після того,? як) (?:ви|ти|над|будеш|будете|скаж|підтвер|виріш|"
                r"отрим)|дайте (?:мені )?знати|дай знати|повідом(?:те|)\b|скажи|скажіть|ніколи|можу|міг би|могла б\b|б\b|би\b|надалі|залюбки|з радістю|"
                r"радий|рада|сподіваюс|чекаю|завжди|у майбутньому|за потреби|звертай)"
            ),
            r"^(?:будь ласка,? )?(?:надішли|надішліть|скинь|скиньте|вкажи|вкажіть|встав|вставте|вибери|виберіть|назви|назвіть)\b",
        ),
        r"\b(?:будь ласка(?!,? зачек)|можете|можеш|хочете|хочеш|надішли|надішліть|скиньте|вкажіть|який|яку|скажи|скажіть)\b",
        (
            r"(?:(?:ще )?(?:одну )?(?:хвилину|хвилинку|хвилиночку|секунду|секундочку)|(?:один )?момент|зачекай(?:те)?.*|почекай(?:те)?.*|зараз повернуся|"
            r"це (?:може|займе).*|дякую за терпіння)(?:,? будь ласка)?"
        ),
        r"^(?:(?:і|а|тепер),? )*(?:наступн\w+(?: \w+)?|далі|тепер|на черзі): \S",
        when=r"\b(?:як тільки|щойно)\b|(?:^|, )(?:коли|якщо)\b",
        script="cyrillic",
    ),
    Language(
        "bg",
        (
            f"файл страница грешка много без преди този тази тези или къде кога защото беше ние наш ваш само нов две ми ти ви му при през след "
            f"има тук работа бих него нея тях всички и в на с не че това за аз по как но от са да се ще си ли сега е вече ако го му бъде може съм "
            f"или към след щ {_BG_SMALL}"
        ),
        "ъ",
        (
            (
                rf"{_BG_LEAD}{_BG_CLITIC}{but('мисля знам имам няма там храм съм нямам разбирам искам съжалявам очаквам препоръчвам предлагам чакам желая пожелавам оставям предпочитам вярвам помня нямам смятам')}\w{{2,}}(?:ам|"
                rf"ям)\b(?!,? че\b)"
            ),
            rf"{_BG_LEAD}ще {_BG_CLITIC}(?!съм|бъда|радвам|чакам|очаквам|обясня|кажа|отговоря|помня|остана|бъде|може|има|трябва)\w+(?:а|я|м)\b",
            (
                rf"(?:^|[\s,]){_BG_CLITIC}ще (?:ти|ви|го|я|ги) (?:(?:го|я|ги|се) )?(?!бъде|стане|е\b|прати|изпрати)\w+(?:ам|ям|ша|жа|ча|ща|ва|на|ня|"
                rf"ля|ря|я)\b(?!.* ще прати)"
            ),
            rf"{_BG_LEAD}{_BG_CLITIC}"
            + but(
                "желая оставям мисля вярвам надявам знам имам~(?:въпрос|предвид) имам съм искам~(?:да~кажа|само) разбирам виждам~(?:че|само) препоръчвам "
                "предлагам предпочитам моля благодаря очаквам чакам съжалявам извинявам пожелавам помня съветвам радвам мога използвам смятам намирам "
                "обичам познавам признавам поздравявам допускам няма проблем напълно всичките така там сам нито онзи времето бих готова приема~се "
                "само~"
            )
            + (
                r"(?:\w+(?:вам|рам|гам|там|кам|шам|щам|чам|жам|нам|лам|дам|вям|лям|рям|ням|тям|зем|азвам|жа|ша)|търся|чета|пиша|правя|започвам|вземам|"
                r"гледам|пускам|местя|превеждам|бързам|пратя|заемам|отивам|минавам|пробвам|поправя|тръгвам|сменям|строя|чистя|редя|деля|меря|броя)\b(?!,? че\b)"
            ),
            (
                r"\b(?:(?:сега|първо|още|вече|аз) (?:трябва|искам|имам нужда)|трябва (?:първо|сега|още)|остава(?: ми)?|налага се|предстои ми|^трябва)(?: (?:още|"
                r"веднъж|първо|сега|и)){0,3} да (?!се знае|знам|кажа|призная|попитам|има|е\b|бъде)\w+(?:а|я|м)\b"
            ),
            r"\b(?:нека(?: да)?|позволи(?:те)?(?: ми)?(?: да)?|остави(?:те)? ме да)\b(?! (?:знам|обясня|кажа|поясня|ти обясня))",
            (
                r"^(?:(?:и|така|сега|добре|ок|е|после),? )*(?:да (?:\w+(?:ем|им|нем|аме|яме)|преминем|видим|започнем|продължим|проверим|погледнем|минем)|"
                r"време е|ред е|преминаваме|продължаваме|на ред|хайде|захващам се|на работа|действам|веднага)\b"
            ),
            r"^(?:зарежда се|извършва се|тече) .*(?:…|\.\.\.)$|\bще (?:имам|бъда) .*\bготов",
        ),
        (
            (
                r"(?<!видя )(?<!проверя )\b(?:ако|когато (?:ми|ти|си|искаш|желаеш|бъдеш)|щом (?:ми|ти|искаш|изпрати|получа)|след като (?:ми|изпратиш)|"
                r"кажи|кажете|изпрати(?:те)? ми|прати(?:те)?|с удоволствие|надявам|очаквам|никога|мога|бих|в бъдеще|отсега нататък|винаги|не се колебай|"
                r"радвам|няма да)\b"
            ),
        ),
        r"\b(?:моля(?! изчакай)|можеш ли|можете ли|искаш ли|искате ли|изпрати|изпратете|кой|коя|кое|кажи|кажете)\b",
        (
            r"(?:(?:само |още )?(?:един |една )?(?:момент|минутка|минута|секунда|секундичка)(?:,? моля)?|изчакай(?:те)?.*|почакай(?:те)?.*|моля изчакай.*|"
            r"веднага се връщам|(?:това )?може да отнеме.*|благодаря за търпението)"
        ),
        r"^(?:(?:и|а|сега),? )*(?:следващ\w+(?: \w+)?|следва|по-нататък|на ред е): \S",
        when=r"\bщом\b|(?:^|, )(?:когато|ако|след като)\b",
        script="cyrillic",
    ),
)
