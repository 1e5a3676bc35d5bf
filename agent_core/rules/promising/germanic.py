"""English, German, Dutch, Swedish, Danish and Norwegian; see `language`."""

from __future__ import annotations

from agent_core.rules.promising.language import Language, any_of, but, lead

_EN_TALK = (
    "always never not need assume presume explain say admit note mention stress emphasi[sz]e repeat reiterate clarify rephrase "
    "elaborate apologi[sz]e conclude summari[sz]e~(?:what|this|that|briefly) outline describe argue concede answer respond "
    "skip avoid stick stay stop treat follow~your use~the~term refer call~(?:it|this|you) cover spare bet trust wait respect defer "
    "believe consider~this accept love like happily gladly see~you miss do~my~best list~(?:them|it) begin~with~the~short tell~you~(?:that|this|what) "
    "leave~(?:it|the|that|this|you) let~the let~you~(?:decide|choose|be|go) help assist show~you give~you~(?:an~example|my|some|the) walk~you put~it guess "
    "know have~to~(?:ask~you|say|admit|decline) ask~(?:you|for|that|whether|again|a|one) leave~the take~(?:that|this|it)~as make~sure make~(?:it|"
    "one~thing|this~clear) thank warn~you be~(?:clear|honest|here|happy|glad|able|available|fine|around|"
    "ready~when|brief|using|looking|waiting|sure|more|very|quick~about|in~touch~if|the|a|an|frank|direct|careful) keep~(?:it|this|that|in~mind|"
    "things|my|your|the) remember "
    "find~it introduce quote speak talk mean tell suggest recommend only~say say~this add~that add: add~one offer share~(?:that|my|a~few) "
    "mind hear congratulate "
    "update~this~answer mirror~your come~back~to~that go~to~bed sleep gonna start~by~saying point~out reassure state warn remind~you~that "
    "stand be~there welcome want"
)
_EN_STILL = any_of(
    "now then also just first next quickly still simply immediately start~by begin~by go~ahead~and try~to right~away at~once briefly "
    "finally actually personally certainly definitely gladly~now only please"
)
_EN_HOW = rf"(?:{_EN_STILL},? )*"
_EN_NOT_DOING = (
    "looking~forward using assuming hoping thinking~(?:that|of~you) wondering talking referring being having getting missing guessing leaning "
    "asking waiting~(?:for~you|to~hear|on~you|for~your) counting relying suggesting proposing recommending offering going(?!~(?:through|"
    "over|back|ahead|on|with)) speaking feeling saying enjoying seeing telling "
    "giving struggling doing~(?:well|fine|great|good|ok|okay) working~(?:as|well) standing~by lacking learning reading~between glad sorry "
    "willing interested trained not considering~that running~(?:in|out|on|as|low|version) taking~(?:this|that|it)~as confident able nothing everything "
    "something anything during according regarding including following depending morning evening meaning warning thing string "
    "setting(?!~(?:up|it|the)) interesting amazing pending given knowing coming~soon concerning excluding king ring spring bring sing building~on~that "
    "unlocking understanding happy~\\w+ning trying~to~(?:help|be) keeping(?!~(?:at|on)) living wedding ending meeting~\\w+~is"
)
_EN_FINITE = (
    r"(?!.*\b(?:is|are|was|were|be|been|will|would|can|could|should|may|might|must|means|requires?|takes?|has|have|had|makes?|gives?|helps?|"
    r"works?|you|your|does|did|shows?|keeps?|lets|needs|causes|avoids|ensures|prevents|improves?|reduces|creates|brings?|leaves|turns|"
    r"remains|seems|sounds|annoys?|lists|fails|becomes?|costs?|saves?|leads?|allows?)\b)"
)
_EN_SMALL = (
    "tomorrow today tonight later shortly soon afterwards this~afternoon this~evening in~the~meantime by~tomorrow additionally besides "
    "ok okay sure great good perfect right alright all~right understood got~it thanks yes and so now next first then finally meanwhile "
    "but or "
    "instead again here today of~course certainly absolutely no~problem thank~you well hmm hm interesting noted"
)
_EN_LEAD = lead(_EN_SMALL)

_DE_NOT = (
    r"sehe(?!~(?:mir|nach|gleich|jetzt|sofort|mal|kurz|es~mir|zuerst|zu)) merke erkenne stoße~auf ahne begrüße bin habe kann darf soll mag weiß würde möchte hätte könnte wäre sollte müsste dürfte denke glaube hoffe meine finde freue rate empfehle verstehe sehe~(?:das|"
    r"kein|keine|hier|darin|da|es|nichts) gehe~davon gehe~aus schlage~(?:vor|dir|ihnen) bleibe danke bedanke helfe stehe warte wünsche brauche bitte frage~mich vermute nehme~an entschuldige schätze kenne fasse~zusammen halte~(?:das|"
    r"die|den|es|mich) liebe mache~mir sage~(?:das|nur|mal|es) lege~wert bevorzuge stimme erwarte zeige~(?:das|dir|ihnen) nenne erinnere~mich weise verzichte biete gebe~(?:zu|"
    r"dir~recht|ihnen~recht) komme~(?:aus|zum~schluss) spreche heiße arbeite~(?:gern|gerne|mit|als|hier) tendiere neige zähle~auf gratuliere verwende benutze beziehe antworte verlasse merke fühle wohne kannte sagte hatte machte wollte konnte konzentriere~mich nehme~(?:das|"
    r"dich)~(?:als|ernst) wette rechne~(?:damit|mit~einer) überlasse stelle~(?:fest|gerne) schreibe~(?:dir|ihnen)~(?:gern|gerne) melde~mich~nur erkläre gerne"
)
_NL_NOT = (
    r"zie(?!~(?:even|nu|na)) merk herken denk vind hoop weet kan zou heb ben was had raad adviseer stel~(?:voor|u|je) geloof verwacht begrijp snap zie~(?:geen|"
    r"dat|het) hoor~(?:graag|het) wacht help blijf wens sta mag neem~aan ga~ervan ga~er~van bedank waardeer ken bedoel gebruik zeg~(?:het|"
    r"maar|dat) noem leg~uit werk~(?:graag|met|als) hou heet woon voel kies~(?:altijd) dacht vermoed begreep zag deed wist reken~erop twijfel vertrouw benadruk laat~(?:de~keuze|"
    r"het~aan) overlaat beveel wil~(?:graag|niet|je|u|dat) moet~(?:zeggen|toegeven|helaas|vragen|je~teleur) niet zal~(?:er~zijn|altijd|"
    r"nooit|niet)"
)
_SV_NOT = (
    r"ser(?!~(?:efter|på|över|till)) hittar minns märker inser tror tycker hoppas ser~(?:fram|inga?|inte|att) rekommenderar föreslår är har kan vet förstår antar känner finns skulle hade väntar ber önskar uppskattar menar anser håller~med hjälper råder var använder märker beklagar tänkte visste såg gjorde blev fick inte aldrig kunde uppfattar gissar finns~här vill~(?:gärna|"
    r"inte|bara|att~du) måste~(?:säga|erkänna|tyvärr|be) behöver~(?:din|ditt|dina|veta|din|få~veta) svarar förklarar avråder överlåter lämnar~(?:valet|"
    r"det~till) gratulerar utgår kommer~att~(?:vara|ha|finnas)"
)
_DA_NOT = (
    r"ser(?!~(?:efter|på|lige|over)) finder husker indser tror synes håber ser~(?:frem|ingen|ikke|at) anbefaler foreslår er har kan ved forstår antager kender finder~det skulle havde venter beder ønsker sætter~pris mener anser hjælper råder var bruger mærker beklager tænkte vidste så gjorde blev fik ikke aldrig kunne gætter glæder vil~(?:gerne~(?:have|"
    r"vide)|ikke|bare|anbefale|foreslå|sige|mene) må~(?:sige|indrømme|desværre|bede) behøver svarer forklarer fraråder overlader går~ud~fra ville skal~(?:nok~svare) mangler~(?:din|"
    r"dit)"
)
_NO_NOT = (
    r"ser(?!~(?:etter|på|over|gjennom)) finner husker innser tror synes håper ser~(?:fram|frem|ingen|ikke|at) anbefaler foreslår er har kan vet forstår antar kjenner skulle hadde venter ber ønsker setter~pris mener anser hjelper råder var bruker merker beklager tenkte visste så gjorde ble fikk ikke aldri kunne gjetter gleder vil~(?:gjerne|"
    r"ikke|bare|anbefale|foreslå|si|tro) må~(?:si|innrømme|dessverre|be) trenger~(?:din|ditt|dine|å~vite) svarer forklarer fraråder overlater går~ut~fra ville mangler~(?:din|"
    r"ditt)"
)
GERMANIC = (
    Language(
        "en",
        (
            f"i we they my our here there which would can could should been has had do does did what when if or but by from as at an be they their "
            f"into out up about after all also just more some other than then these was file code check run test get make see look please before "
            f"need been any only first next error done the and is it to of that you this for i'll i'm let's now let me with have will not are was "
            f"there step one on {_EN_SMALL}"
        ),
        "",
        (
            r"\b(?:we'll|we will) (?:now|then|next|start|continue|go on|proceed|move)\b|\bwe (?:now |then )?(?:continue|proceed|move on|go on) (?:with|to)\b",
            rf"\b(?:i'll|i will|i shall|i'm going to|i am going to|i'm gonna|i'm about to|i am about to|i'm off to|we'll now|i'll be sure to) {_EN_HOW}{but(_EN_TALK)}\w",
            r"\bi(?:'ll| will) be (?:right back|back|done|sending|checking|running|working|updating|in touch (?:as|once|when|shortly|soon))",
            r"\bi(?:'ll| will) (?:let you know|tell you|keep you|remind you(?! that)|warn you|get back|give you (?:a|the) (?:shout|heads|update))",
            rf"\bi(?:'d like to| want to|'d better| plan to| intend to|'m planning to|'m trying to) {_EN_HOW}{but(_EN_TALK)}\w+(?! from you)",
            rf"\b(?:i'm|i am) {_EN_HOW}(?:currently |already )?{but(_EN_NOT_DOING)}\w+ing\b(?! to you)",
            rf"{_EN_LEAD}(?:so,? )?(?:currently |just |quickly )?{but(_EN_NOT_DOING)}\w{{2,}}ing\b(?=\s\w|\s?(?:…|\.\.\.|:))(?! (?:of|is|are)\b){_EN_FINITE}",
            rf"(?<!don't )\b(?:let me|lemme|let's|let us|allow me to) {_EN_HOW}{but(_EN_TALK + ' know say put~it~this recap share illustrate define phrase speak paint start~by~saying have~your')}\w",
            rf"\bi {_EN_HOW}(?:need|have|ought|still need|still have) to {_EN_HOW}{but(_EN_TALK)}\w",
            rf"\bi (?:must|should|had better) {_EN_HOW}{but(_EN_TALK)}\w",
            (
                r"^(?:(?:and|so|now|then|okay|ok|right|great|good|alright),? )*(?:moving on|on to the|onto the|over to|off to|back to (?:work|the)|time (?:to|"
                r"for me)|now (?:for|on to|to)|here goes|here we go|(?:i'm )?on it\b|will do\b|right on it|coming (?:right )?up|consider it done|starting now|"
                r"doing (?:that|it|so) now)"
            ),
            r"^next,? (?:tool |function )?(?:calls?|step|action|message|i|we)\b.*\bwill\b",
            r"\bgive me (?:a|one|just|two|some)\b.*\b(?:minute|moment|second|sec|while|time)\b|\bhang (?:on|tight)\b|\bbear with me\b|^(?:will|gonna|going to|about to) (?!be (?:happy|glad|here)|not |you |it |this |that |the )\w|\bhold on\b",
            r"\bi (?:now |then )?(?:proceed|continue|move on|turn)\b(?! (?:to )?be)",
        ),
        (
            (
                r"(?<!see )(?<!check )(?<!know )(?<!test )(?<!verify )(?<!out )(?<!confirm )(?<!determine )(?<!and )\bif (?:you|that|this|it's (?:ok|"
                r"fine)|so|not|needed|there's|there is|anything|any|the user|necessary|desired|possible|and)\b"
            ),
            (
                r"\b(?:unless|whenever|in case|would you|should you|do you want|want me to|(?:once|as soon as|when|after|until|before) (?:you|your|"
                r"i have your|i get your|i hear)|just (?:say|tell|let|ask|give me (?!a|one|some))|say the word|feel free|looking forward|don't hesitate|"
                r"happy to|glad to|hope (?:this|that|it|you)|(?:in|for) (?:the )?future|from now on|going forward|next time|in mind|as (?:an|a) (?:ai|"
                r"language)|i (?:won't|would|could|can't|cannot))\b"
            ),
            (
                r"^(?:please )?(?:send|tell|share|give(?! me (?:a|one|just|two|some))|pick|choose|paste|provide|upload|reply|answer|point) (?!.*\bnow\b)(?:me|"
                r"us|it|one|which|the|a|your)\b"
            ),
            r"^(?:and |so |but )?if\b|^reply with\b|\blet me know\b|\bthe choice\b",
            r"\bit'll\b.*\byou\b",
        ),
        r"\b(?:please(?! wait| hold| stand| bear)|can you|could you|would you|do you want|shall i|should i|tell me|send me|let me know|which one|share)\b",
        (
            r"(?:(?:please )?(?:just )?(?:give me )?(?:one|a|just a|just one) (?:quick )?(?:moment|second|sec|minute|minutes)(?: please)?|please (?:wait|"
            r"hold on|stand by|bear with me).*|hold on.*|bear with me.*|hang (?:on|tight).*|stand by.*|back (?:soon|shortly|in a .*)|(?:this|it) (?:may|"
            r"might|will|should|could) take .*|(?:i'll )?be right back|thanks? (?:you )?for your patience|won't (?:take|be) long|working on it|stay tuned)"
        ),
        (
            r"^(?:(?:and|so|now|then|okay|ok|right),? )*(?:next(?: up| on the list| step| task| item| stop)?|up next|on to the next (?:one|thing|"
            r"step|item|point))(?: is)?: \S"
        ),
        when=r"^(?:once|as soon as|when|after (?:the|your|it|this)|if)\b|\b(?:once|as soon as|when) (?:the|it|it's|that|they|this|all|everything)\b",
    ),
    Language(
        "de",
        (
            f"wie oder aber nach bei aus um am an dem des den hat sind wird nur noch schon alle mehr kann datei fehler bitte beim zum zur vom "
            f"über unter wenn dass das wieder seite neu gut hier dieser diese dieses prüfe starte bin der die das und ist ich nicht ein eine zu "
            f"den mit auf für sie du werde jetzt nun dann auch im es noch habe wird mal ihnen dir {_DE_NOT}"
        ),
        "ä ö ü ß",
        (
            (
                r"\b(?:machen|gehen|fahren|setzen|fangen|kommen|beginnen|starten) wir (?:jetzt|nun|weiter|fort|mit|als|zum|zur|dann|die|das)|\bwir (?:machen|"
                r"gehen|fahren|setzen|fangen|kommen|beginnen|starten) (?:jetzt|nun|weiter|fort|mit|als|zum|zur|dann)|^(?:als nächstes|jetzt|nun|dann|"
                r"danach) (?:kommt|folgt|kommen|folgen)\b"
            ),
            (
                r"(?:\bich (?:werde|will)|(?:werde|will) ich) (?!.*\b(?:sein|haben|können|müssen|bleiben|merken|erklären|beantworten|nie|niemals)\b)(?!nicht|"
                r"darauf warten|warten|mich (?:freuen|bemühen|daran|kurz|an))"
            ),
            r"\b(?:dir|dich|ihnen|sie) .*\b(?:fertig|bereit)(?: haben)?$|\b(?:habe|bin) ich .*\bfertig$|\bgehe ich (?:das|die|den|es)\b",
            rf"\bich {but(_DE_NOT)}\w+e\b(?! (?:\w+ )?(?:nicht|kein\w*|nie)\b)(?!.*\b(?:nicht mehr|gerne?)\b)",
            (
                rf"\b(?:jetzt|nun|dann|gleich|sofort|daher|deshalb|also|zuerst|zunächst|erst|danach|anschließend|als nächstes|als erstes|schritt|weiter|"
                rf"um \S+(?: uhr)?|moment|morgen(?: um \w+)?|heute|das|den|die|dies|dem|darum|damit|darauf|da|daraufhin|vorher|dazu|dafür|hierfür|parallel|"
                rf"inzwischen) {but('habe bin kann hätte würde möchte wäre könnte sollte glaube denke verstehe überlasse sehe~(?:ich~(?:kein|das|nichts)) sage weiß hoffe finde empfehle rate meine')}\w+e ich\b"
            ),
            rf"^(?:\S+ ){{1,5}}?{but(_DE_NOT)}\w+e ich\b(?! (?:\w+ )?(?:nicht|kein\w*|nie|gern)\b)|^\w+e .*(?:…|\.\.\.|:)$",
            r"(?:\bich muss|\bmuss ich) (?!.*\b(?:sagen|zugeben|gestehen|ablehnen|wissen|fragen|bitten|leider|passen|zugestehen|klarstellen)\b)",
            r"\b(?:lass(?:en sie)?|lasst) (?:mich|uns|mal) (?!.*\b(?:wissen|erklären|sagen|erläutern|zusammenfassen|klarstellen|ehrlich)\b)",
            (
                r"^(?:(?:und|also|gut|nun|jetzt|dann|so|okay|ok|super|alles klar),? )*(?:weiter (?:geht|mit|zu|im)|auf (?:zum|zur|geht|in)|nun (?:zu|"
                r"zum|zur|folgt|kommt)|jetzt (?:zu|zum|zur|kommt|folgt|geht|wird|werden)|zeit,? |(?:mal )?los\b|(?:geht's|los geht|wird erledigt|"
                r"wird gemacht|mache ich|kommt sofort)|bin (?:schon )?dran|schauen wir|sehen wir|gehen wir|machen wir|kümmere mich|(?:bin|sind) (?:gerade |"
                r"schon )?dabei)"
            ),
            r"\bich (?:bin (?:gerade |jetzt |schon )?(?:dabei|dran)|mache mich|fange|gehe|schau|sehe) (?!.*\b(?:davon|kein|keine|nichts)\b)",
            r"\bkümmere mich\b|\bich (?:sag|geb|meld|erinner)e? (?:dir|ihnen|euch|mich|dich|sie|euch)\b(?! (?:gern|nicht|das))",
        ),
        (
            (
                r"(?<!schaue, )\b(?:wenn (?!.*(?:fertig|durch|soweit|vorliegt|abgeschlossen|da ist))|falls|sofern|bei bedarf|solltest|sollten sie|"
                r"sollte (?:etwas|noch)|jederzeit|künftig|in zukunft|ab jetzt|von nun an|hoffe|freue|gern(?:e)?|wissen lassen|lass (?:es )?mich wissen|"
                r"lassen sie (?:es )?mich wissen|sag(?:en sie)? (?:mir|einfach|bescheid)|gib(?: mir)?(?: kurz| bitte)? bescheid|geben sie|melde? dich|"
                r"melden sie|bevor du|bevor sie|schick|schicken sie|nenne?(?: mir)?|nennen sie|such(?:e|en sie)? (?:dir|sich)|wähle?|wählen sie|zeige? mir|"
                r"teil(?:e|en sie)? mir)\b"
            ),
            r"\bsobald (?:du|ihr|mir|deine?|ihre?|sie (?!fertig|da|durch|abgeschlossen|vorlieg|komplett|steht|beendet))",
            r"\bwie (?:du willst|sie wünschen)\b|\bwürde\b|\bkönnte\b|\bhätte\b|\bnie\b|\bniemals\b",
        ),
        (
            r"\b(?:bitte(?! warte| einen| um geduld)|kannst du|können sie|könntest du|könnten sie|soll ich|möchtest du|möchten sie|willst du|wollen sie|"
            r"schick|schicken sie|sag mir|welche[rns]?)\b"
        ),
        (
            r"(?:(?:nur |noch )?(?:einen?|kleinen?|kurzen?|ein)? ?(?:kurzen? |kleinen? )?(?:moment|augenblick|sekunde|minute)(?: geduld)?(?: bitte)?|"
            r"bitte (?:warten|warte|einen moment|um geduld|gedulde|haben sie).*|das (?:kann|wird|könnte|dürfte) .*(?:dauern|minuten).*|bin gleich (?:zurück|"
            r"wieder da)|danke für (?:deine|ihre) geduld|moment)"
        ),
        r"^(?:(?:und|also|nun|dann),? )*(?:als nächstes|weiter|auf zum nächsten \w+|der nächste \w+|nächster \w+|nun zum nächsten \w+): \S",
        when=r"\bsobald\b|(?:^|, )(?:wenn|falls|nachdem)\b",
    ),
    Language(
        "nl",
        (
            f"bij uit over maar wat hoe ze hij wij we worden wordt kunnen kan naar dit deze bestand pagina fout nieuwe geen alle meer nog wel hier "
            f"daar ervan klaar bestanden gedaan de het een en is ik niet van dat je op te met voor ga nu zal even dan ook er om aan uw laat meteen "
            f"eerst ij {_NL_NOT}"
        ),
        "",
        (
            (
                r"\bwe (?:gaan|beginnen|pakken|starten) (?:door|verder|nu|met|naar|over|dan|aan)\b|\b(?:gaan|beginnen|pakken) we (?:door|verder|nu|met|"
                r"naar|over|dan|aan)\b"
            ),
            rf"\bik {but(_NL_NOT)}\w+\b(?!.*\bgraag\b)",
            (
                rf"\b(?:nu|dan|daar|daarna|eerst|vervolgens|meteen|straks|zo|hierna|daarom|dus|morgenochtend|morgen|vanavond|uur|vandaag) (?:ga|zal|"
                rf"moet|wil|haal|maak|begin|neem|{but('heb ben kan zou weet denk snap begrijp hoop vind')}\w+) ik\b"
            ),
            r"\bheb ik .*\bklaar$",
            (
                rf"^(?:\S+ ){{1,5}}?{but(_NL_NOT)}(?!dat|als|wat|die|of|en|omdat|maar|hoe|waar|zodat|want|toen|wanneer|zodra|terwijl)\w+ ik\b(?! (?:\w+ )?(?:niet|"
                rf"geen|nooit|graag)\b)"
            ),
            r"\blaa?t (?:me|mij|ik|ons|we)\b(?! (?:het |dat )?weten)(?! (?:uitleggen|eerlijk))|\blaten we\b",
            (
                r"^(?:(?:en|dus|nu|dan|oké|ok|goed|prima),? )*(?:op naar|door naar|verder (?:met|naar)|tijd om|nu (?:de|het|naar|nog|eerst|volgt)|"
                r"aan de slag|komt eraan|doe ik|ga ik doen|even (?:kijken|checken|zoeken)|bezig met)|\bwordt \w+.*(?:…|\.\.\.)$|\b(?:die|dat|dit|hem|"
                r"het) \w+ ik (?:nu|meteen|even|dan)\b"
            ),
            r"\bik (?:laat|meld|geef) .*\b(?:weten|zodra|als het klaar)\b",
        ),
        (
            (
                r"\b(?:als (?:je|u|jullie|dat|er|het nodig|het goed)|zodra (?:je|u|jullie)|wanneer (?:je|u)|nadat (?:je|u)|indien|mocht|graag|laat (?:het |"
                r"dat )?(?:me|mij|ons) (?:het )?(?:maar )?weten|hopelijk|voortaan|in de toekomst|zou|nooit)\b"
            ),
            r"^(?:zeg|stuur|deel|geef|kies|vertel)(?: (?:me|mij|maar|het|eens))?\b",
        ),
        r"\b(?:alsjeblieft|alstublieft|graag|kun je|kunt u|wil je|wilt u|zal ik|stuur|welke?|laat het me)\b",
        (
            r"(?:(?:een|één|heel even|nog)? ?(?:momentje|moment|ogenblik|ogenblikje|seconde|minuutje)(?: geduld)?(?: (?:alsjeblieft|alstublieft|"
            r"a\.u\.b))?|even geduld.*|dit (?:kan|duurt|zal) .*|ben zo terug|wacht even.*)"
        ),
        r"^(?:(?:en|dus|nu|dan),? )*(?:volgende \w+|nu|verder|op naar (?:de|het) volgende(?: \w+)?|dan nu): \S",
        when=r"\bzodra\b|(?:^|, )(?:als|wanneer|nadat|indien)\b",
    ),
    Language(
        "sv",
        (
            f"från efter eller men vad hur hon han vi blir blev kan alla mer när där här dig dem sida fil fel gör göra nya också bara inga bra "
            f"tack över under mellan och det är att jag en som på för med inte ska till av den du ett låt nu har kan om mig så vill innan {_SV_NOT}"
        ),
        "å ä ö",
        (
            r"\bvi (?:fortsätter|går|tar|kör|börjar) (?:med|vidare|nu|till|över|på)\b",
            rf"\bjag {but(_SV_NOT)}(?:\w+r|ska|skall|måste|får|vill|tänker)\b(?! (?:\w+ )?(?:inte|inga?|inget|aldrig)\b)(?!.*\bgärna\b)",
            (
                r"\b(?:nu|då|sedan|sen|först|därefter|därför|strax|genast|imorgon|i morgon|klockan \S+) (?!(?:är|har|kan|vet|tror|förstår|ser) )(?:ska|"
                r"\w+r|måste|vill) jag\b"
            ),
            (
                rf"^(?:\S+ ){{1,5}}?{but(_SV_NOT)}(?!när|för|där|eller|är|har|efter|över|under|kan|hur|var)(?:ska|\w{{2,}}r) jag\b(?! (?:\w+ )?(?:inte|"
                rf"inga?|gärna|aldrig)\b)"
            ),
            r"\bhar jag .*\bklart?\b|\bjag klara?(?:r|t)?\b|\bhar jag klar\b|\bjag (?:har|är) .*\bklart?(?: till| innan|$)",
            r"\blåt (?:mig|oss)\b(?! (?:veta|förklara|säga))|\bsäger (?:till|ifrån) (?:när|så)",
            (
                r"^(?:(?:och|så|nu|då|okej|ok|bra|sen|sedan),? )*(?:dags att|vidare (?:till|med)|över till|nu (?:till|över|är det dags)|går vi|tar vi|"
                r"kör vi|vi (?:går|tar|fortsätter)|nästa steg|på det|sätter igång|fixar|kommer strax|kollar|letar|söker|läser|hämtar|startar|börjar med|"
                r"kör)\b"
            ),
        ),
        (
            (
                r"\b(?:om (?:du|ni|det (?:behövs|hjälper|passar|är|skulle)|något|så|den inte)|så snart (?:du|ni|jag (?:får|har fått) d)|när (?:du|"
                r"ni)|efter att du|säg (?:bara |gärna )*till|säg (?:vilka|vilken|vad|om|när)|hör (?:gärna )?av (?:dig|er)|tveka inte|ser fram|hoppas|"
                r"skulle|i framtiden|framöver|gärna|vänligen|aldrig)\b"
            ),
            r"^(?:skicka|berätta|ge|dela|välj)\b",
        ),
        r"\b(?:snälla|vänligen|kan du|kan ni|vill du|ska jag|skicka|vilken|vilket|vilka|säg)\b",
        (
            r"(?:(?:ett |bara ett )?(?:ögonblick|litet ögonblick)(?:,? tack)?|en (?:sekund|minut|stund)|vänta (?:lite|ett).*|det (?:kan|tar) .*|"
            r"strax tillbaka|tack för tålamodet)"
        ),
        r"^(?:(?:och|så|nu|då),? )*(?:härnäst|näst på tur|nästa \w+|vidare): \S",
        when=r"\bså (?:fort|snart)\b|(?:^|, )(?:när|om|efter att)\b|\bnär \w+ (?:är|har)\b",
    ),
    Language(
        "da",
        (
            f"fra efter eller men hvad hvordan hun han vi bliver blev kan alle mere når der her dig dem side fil fejl gør gøre nye også bare ingen "
            f"godt tak over under mellem hvor mit og det er at jeg en som på for med ikke skal til af den du et lad nu har kan om mig så vil hvad "
            f"lige noget hvis ud {_DA_NOT}"
        ),
        "æ ø å",
        (
            r"\bvi (?:fortsætter|går|tager|kører|begynder) (?:med|videre|nu|til|over|i gang)\b",
            rf"\bjeg {but(_DA_NOT)}(?:\w+r|skal|må|vil)\b(?! (?:\w+ )?(?:ikke|ingen|intet|aldrig)\b)(?!.*\bgerne\b)",
            r"\b(?:nu|så|derefter|først|derfor|straks|i morgen|klokken \S+|bagefter) (?!(?:er|har|kan|ved|tror|forstår|ser) )(?:skal|\w+r|må|vil) jeg\b",
            r"\b(?:har jeg|jeg har) .*\bklart?\b(?! over)",
            (
                rf"^(?:\S+ ){{1,5}}?{but(_DA_NOT)}(?!når|før|for|der|eller|er|har|efter|over|under|kan|hvor|var|fordi|her)(?:skal|\w{{2,}}r) jeg\b(?! (?:\w+ )?(?:ikke|"
                rf"ingen|gerne|aldrig)\b)"
            ),
            r"\blad (?:mig|os)\b(?! (?:vide|forklare|sige))",
            (
                r"^(?:(?:og|så|nu|okay|ok|godt|fint),? )*(?:tid til at|videre (?:til|med)|over til|er det videre|går vi|tager vi|vi (?:går|tager|fortsætter)|"
                r"næste skridt|på den|kommer straks|kigger|leder|søger|læser|henter|starter|begynder|kører|tjekker)\b"
            ),
        ),
        (
            (
                r"\b(?:hvis|så snart (?:du|i)|når (?:du|i) |efter du|sig (?:bare |endelig |gerne )*til|sig,? (?:hvilke|hvilken|hvad|om|hvornår)|"
                r"giv (?:mig )?(?:bare )?besked|hør(?:er)? gerne|tøv ikke|ser frem|glæder|håber|ville|i fremtiden|fremover|gerne|venligst|aldrig)\b"
            ),
            r"^(?:send|fortæl|giv|del|vælg)\b",
        ),
        r"\b(?:venligst|kan du|kan i|vil du|skal jeg|send|hvilken|hvilket|hvilke|sig)\b",
        (
            r"(?:(?:et |lige et )?(?:øjeblik|lille øjeblik)(?:,? tak)?|et (?:sekund|minut)|vent (?:lidt|et).*|det (?:kan|tager) .*|straks tilbage|"
            r"tak for tålmodigheden)"
        ),
        r"^(?:(?:og|så|nu),? )*(?:næste \w+|videre|dernæst): \S",
        when=r"\bså snart\b|(?:^|, )(?:når|hvis|efter at)\b|\bnår \w+ (?:er|har)\b",
    ),
    Language(
        "no",
        (
            f"fra etter eller men hva hvordan hun han vi blir ble kan alle mer når der her deg dem side fil feil gjør gjøre nye også bare ingen "
            f"bra takk over under mellom hvor mitt ikke og det er at jeg en som på for med ikke skal til av den du et la nå har kan om meg så vil "
            f"hva noe hvis ut {_NO_NOT}"
        ),
        "æ ø å",
        (
            r"\bvi (?:fortsetter|går|tar|kjører|begynner) (?:med|videre|nå|til|over|i gang)\b",
            rf"\bjeg {but(_NO_NOT)}(?:\w+r|skal|må|vil|får)\b(?! (?:\w+ )?(?:ikke|ingen|intet|aldri)\b)(?!.*\bgjerne\b)",
            r"\b(?:nå|så|deretter|først|derfor|straks|i morgen|klokka \S+|etterpå) (?!(?:er|har|kan|vet|tror|forstår|ser) )(?:skal|\w+r|må|vil) jeg\b",
            r"\b(?:har jeg|jeg har) .*\bklart?\b(?! over)",
            (
                rf"^(?:\S+ ){{1,5}}?{but(_NO_NOT)}(?!når|før|for|der|eller|er|har|etter|over|under|kan|hvor|var|fordi|her)(?:skal|\w{{2,}}r) jeg\b(?! (?:\w+ )?(?:ikke|"
                rf"ingen|gjerne|aldri)\b)"
            ),
            r"\bla (?:meg|oss)\b(?! (?:vite|få vite|forklare|si))|\bjeg (?:gir|sier) (?:beskjed|fra)\b",
            (
                r"^(?:(?:og|så|nå|da|okei|ok|bra|fint),? )*(?:på tide å|videre (?:til|med)|over til|går vi|tar vi|vi (?:går|tar|fortsetter)|neste steg|"
                r"på saken|kommer straks|ser etter|leter|søker|leser|henter|starter|begynner|kjører|sjekker)\b"
            ),
        ),
        (
            (
                r"\b(?:hvis|så snart (?:du|dere)|når (?:du|dere) |etter at du|(?:bare )?si (?:bare |gjerne )*(?:i)?fra|si (?:hvilke|hvilken|hva|om|"
                r"når)|gi (?:meg )?(?:bare )?beskjed|hører gjerne|nøl ikke|ser (?:fram|frem)|gleder|håper|ville|i framtiden|i fremtiden|framover|gjerne|"
                r"vennligst|aldri)\b"
            ),
            r"^(?:send|fortell|gi|del|velg)\b",
        ),
        r"\b(?:vennligst|kan du|kan dere|vil du|skal jeg|send|hvilken|hvilket|hvilke|si )\b",
        (
            r"(?:(?:et |bare et )?(?:øyeblikk|lite øyeblikk)(?:,? takk)?|et (?:sekund|minutt)|vent (?:litt|et).*|det (?:kan|tar) .*|straks tilbake|"
            r"takk for tålmodigheten)"
        ),
        r"^(?:(?:og|så|nå|da),? )*(?:neste \w+|videre|dernest): \S",
        when=r"\bså snart\b|(?:^|, )(?:når|hvis|etter at)\b|\bnår \w+ (?:er|har)\b",
    ),
)
