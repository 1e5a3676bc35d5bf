"""French, Spanish, Portuguese, Italian and Romanian; see `language`."""

from __future__ import annotations

from agent_core.rules.promising.language import Language, but, lead

_FR_SMALL = (
    "demain aujourd'hui ce~soir plus~tard cet~après-midi après~cela bientôt ensuite~je par~la~suite et donc alors puis ensuite maintenant "
    "d'abord bien bon parfait ok okay d'accord très~bien entendu compris oui moi aussi tout~de~suite dans~un~premier~temps du~coup voilà "
    "merci super génial pour~cela pour~commencer à~présent désormais~je mais ici là en~parallèle"
)
_FR_LEAD = lead(_FR_SMALL)
_FR_PRONOUN = r"(?:(?:me |te |vous |le |la |les |lui |leur |y |en |t'|l'|m'|s'|nous )){0,3}+"
_FR_SAY = (
    "être bien mieux avoir pouvoir devoir rester vous~expliquer expliquer t'expliquer résumer supposer garder attendre dire te~dire vous~dire "
    "m'en~tenir répondre préciser rappeler~que éviter ne"
)

_ES_SMALL = (
    "esta~tarde esta~noche más~tarde pronto el~lunes el~martes el~miércoles el~jueves el~viernes además y entonces luego después ahora "
    "ya primero bien bueno vale ok claro perfecto de~acuerdo entendido sí también así~que pues mientras~tanto a~continuación yo por~tanto "
    "por~eso gracias genial ahora~mismo en~seguida enseguida mañana hoy pero aquí"
)
_ES_LEAD = lead(_ES_SMALL)
_ES_PRONOUN = r"(?:(?:me|te|lo|la|los|las|le|les|se|os|nos) ){0,2}+"
_ES_SAY = (
    "ser estar tener~que poder explicar explicarte resumir recordar~que suponer esperar decir decirte dejar mantener seguir~siendo necesitar "
    "hablar responder aclarar evitar darte~un~ejemplo"
)
_O_NOUNS = (  # what begins a clause in -o and is no verb of the speaker's
    r"(?!scrivo |arrivo |attivo |deriv\w+ )\w+(?:eto|mento|miento|amente|mente|ismo|ario|orio|ivo|ción|ción|ulo|cto|erro|ajo|eio|eiro|izio|aggio|oglio|uno|imo|ésimo|esimo|simo) "
)

_PT_SMALL = (
    "à~tarde hoje~à~tarde à~noite mais~tarde em~breve na~segunda na~sexta além~disso e então depois agora já primeiro bem bom ok certo claro "
    "perfeito entendido combinado sim também portanto assim enquanto~isso a~seguir em~seguida eu por~isso obrigado obrigada ótimo amanhã "
    "hoje mas aqui pronto beleza logo"
)
_PT_LEAD = lead(_PT_SMALL)
_PT_PRONOUN = r"(?:(?:me|te|o|a|os|as|lhe|lhes|se|nos|já|isso) ){0,2}+"
_PT_SAY = (
    "ser estar ter~que poder explicar resumir lembrar~que supor esperar dizer deixar manter precisar falar ficar continuar~sendo responder "
    "esclarecer evitar"
)

_IT_SMALL = (
    "stasera questo~pomeriggio più~tardi presto domani~mattina lunedì venerdì inoltre nel~pomeriggio e quindi allora poi ora adesso subito "
    "prima bene ok certo perfetto d'accordo capito sì anche intanto dunque perciò va~bene io ma qui grazie ottimo nel~frattempo dopo domani "
    "oggi così"
)
_IT_LEAD = lead(_IT_SMALL)
_IT_PRONOUN = r"(?:(?:mi|ti|lo|la|li|le|vi|ci|ne|gli|me ne|te lo|me lo|ve lo|se) ){0,2}+"
_IT_SAY = "essere stare avere potere dovere spiegare spiegarti riassumere supporre sperare dire dirti lasciare parlare rispondere precisare evitare"

_RO_SMALL = (
    "diseară după-amiază mai~târziu curând luni vineri mâine~dimineață de~asemenea în~plus apoi și deci apoi acum mai~întâi întâi bine "
    "ok sigur perfect de~acord am~înțeles da așa~că atunci imediat eu între~timp dar aici mulțumesc în~continuare mâine azi"
)
_RO_LEAD = lead(_RO_SMALL)
_RO_PRONOUN = r"(?:(?:mă|îmi|îți|te|vă|îl|o|îi|le|ne|mi|ți|vi) ){0,2}+"

_FR_NOT = (
    r"constate note remarque perçois doute~que souviens me~souviens devine suis~(?!en~train) suis pense crois peux sais veux~(?:dire|juste) "
    r"vois comprends trouve suppose souhaite attends remercie regrette aime connais confirme ne n' reste recommande conseille suggère propose "
    r"préfère espère dis~(?:que|cela) dois~(?:dire|avouer|admettre|vous|reconnaître) doute félicite réponds utilise m'excuse excuse rappelle~que "
    r"parle considère estime prends~(?:note|acte) viens~de sers tiens~à pars~du ressens compte~sur laisse"
)
_ES_PARTICIPLE = r"(?!\w+ão\b|(?!(?:añado|pido|divido|mido|decido|traslado|cuido|respaldo|impido)\b)\w+(?:ado|ido)\b)"
_IT_PARTICIPLE = r"(?!(?!(?:aiuto|invito|evito|tratto|visito|dato|adatto)\b)\w+(?:ato|uto|ito|ano|ono)\b)"
_ES_NOT = (
    r"encuentro observo recuerdo~que opino imagino saludo \w+(?:mento|miento|ismo|tivo|ario|orio|ulo|mente) todo listo hecho bueno claro como pero solo sólo cuando cuanto resultado resumiendo perfecto correcto completo mucho poco esto eso ejemplo caso nuevo último largo bajo cómo yo no lo creo pienso espero supongo recomiendo sugiero prefiero puedo quiero~(?:decir|"
    r"que) tengo estoy entiendo siento veo~(?:que|un|una|el|la|dos) conozco agradezco quedo considero opino confirmo deseo debo ofrezco propongo aconsejo necesito lamento dudo primero segundo tercero texto código sitio archivo arquivo servicio producto proceso cuarto quinto ambos mismo tanto uno cero otro dinero precio tiempo año día modo tipo método punto paso~(?:\d|"
    r"a~paso) adjunto respondo uso juro digo~(?:que|esto) hablo noto éxito muevo~que asumo saludo amigo entro~en~detalle exacto anoto~que falto excepto incluso cierto rápido fijo pronto luego dejo acho acabo ho fico resto resto~a cargo~de mundo público~es como"
)
_PT_NOT = (
    r"encontro observo lembro~(?:de|que) imagino \w+(?:mento|ismo|tivo|ário|ório|ulo|mente|eiro|udo) todo tudo isso isto aquilo pronto feito bom claro como quando quanto resultado perfeito correto completo muito pouco exemplo caso novo último não no acho penso espero suponho recomendo sugiro prefiro posso quero~(?:dizer|"
    r"que) tenho entendo sinto vejo~(?:que|um|uma|o|a) conheço agradeço fico considero confirmo desejo devo ofereço proponho aconselho preciso lamento duvido texto código arquivo serviço produto processo primeiro segundo terceiro quarto ambos mesmo tanto outro dinheiro preço tempo ano modo tipo método ponto passo~(?:\d|"
    r"a~passo) anexo respondo uso digo~(?:que|isso) falo noto sucesso assumo certo rápido fixo logo mundo banco lembro~que imagino~que domínio caminho deixo aguardo creo quedo acabo ho resto acho~que"
)
_IT_NOT = (
    r"trovo osservo ricordo~che immagino auguro porgo saluto \w+(?:mento|ismo|tivo|orio|ulo|mente|ondo) prego tutto questo quello fatto buono chiaro come quando quanto risultato perfetto corretto completo molto poco esempio caso nuovo ultimo lungo basso io no lo però sono ho credo~(?:che|"
    r"di|sia) credo penso spero suppongo consiglio suggerisco preferisco posso voglio~(?:dire|che) devo~(?:dire|ammettere|chiederti) sto~(?:bene|"
    r"solo~dicendo) capisco trovo~(?:che|il|la) vedo~(?:che|un|una|il|la) conosco ringrazio resto considero confermo desidero offro propongo raccomando dubito testo~(?:è|"
    r"del|che) codice sito servizio prodotto processo primo secondo terzo quarto entrambo stesso tanto uno altro tempo anno modo tipo metodo punto passo~(?:\d|"
    r"dopo) rispondo uso dico~(?:che|solo) parlo noto successo certo rapido presto mondo so immagino~che ciao do~per saluto rimango solo proprio dentro dietro sopra sotto ecco quindi meno ammetto apprezzo lascio creo quedo acho fico acabo vinco ho~appena mi~dispiace temo evito"
)
_O_NOT = f"{_ES_NOT} {_PT_NOT} {_IT_NOT}"  # what is no act in one of the three is none in the others: they share many of the forms
_RO_NOT = (
    r"găsesc văd observ gândesc amintesc~că constat cred sper recomand sugerez prefer pot vreau~să~spun înțeleg văd~că consider confirm doresc propun sunt am doresc urez las știu mulțumesc aștept rămân aș simt presupun regret găsesc~că folosesc țin~(?:minte|"
    r"la) spun~(?:că|doar) vorbesc mă~bucur bucur tem felicit sfătuiesc cunosc admit ofer afirm nu bun bine din un asta"
)
ROMANCE = (
    Language(
        "fr",
        (
            f"ne plus par sont être cette ces mais ou où comme aux leur mon ma mes votre vos nous ils elle on fichier page erreur faire fait "
            f"très bien aussi sans sous avant après toutes tout texte si ça cela voici dois nouveau test tests le la les et est je de des un "
            f"une pour que vous dans vais sur ce maintenant pas du au en il j'ai qui avec votre tu {_FR_SMALL} {_FR_NOT}"
        ),
        "é è ê à ç œ ù û î ô â ë ï",
        (
            r"\b(?:on|nous) (?:continue|continuons|passe|passons|poursuit|poursuivons|reprend|reprenons|enchaîne|enchaînons|commence|commençons)\b",
            rf"\bje (?:m'en )?vais (?:(?:maintenant|d'abord|ensuite|aussi|tout de suite|simplement|juste|commencer par) )*{but(_FR_SAY)}\w",
            rf"\bj(?:e |'){_FR_PRONOUN}(?!serai|resterai|pourrai|devrai|attendrai|saurai|répondrai|éviterai)\w*rai\b(?!.*\bplaisir)",
            rf"{_FR_LEAD}j(?:e |'){_FR_PRONOUN}"
            + but(_FR_NOT)
            + r"(?!\w+rais\b|(?!fais|refais|sais|connais)\w+ais\b|en ai\b|en suis\b)\w+(?:e|s|x|ds|ts)\b",
            (
                r"\bje (?!suis|sais|peux|vois|comprends|pense|crois)\w+(?:e|s|x|ds) (?:\w+ ){0,4}(?:maintenant|tout de suite|immédiatement)\W*$|\bje (?:te |"
                r"vous )(?:préviens|tiens au courant|rappelle|recontacte|écris|fais signe|dis)\b(?! que)"
            ),
            r"\bje suis en train de (?!me demander|parler)|\bje (?:suis prêt|m'apprête) à (?!vous|t'|répondre)|\bje compte (?!sur)\w+er\b",
            (
                r"\b(?:je dois|il faut que je|il faut (?:d'abord|maintenant|encore)|il me reste à|il me faut|j'ai (?:encore |d'abord |juste )?besoin de|"
                r"je veux (?:d'abord|encore|aussi)) (?!.*\b(?:votre|ton|vos|tes|savoir|dire|avouer|admettre|préciser|que vous)\b)"
            ),
            r"\b(?:laisse[z]?[- ](?:moi|nous)|permett(?:ez|s)-moi de)\b(?! (?:vous |t')?(?:savoir|expliquer|préciser|dire|résumer))",
            (
                r"^(?:(?:et|bien|bon|alors|maintenant|ok|parfait|ensuite|d'accord),? )*(?:passons|allons|voyons|commençons|continuons|regardons|vérifions|"
                r"place (?:à|au)|c'est parti|au tour|on (?:passe|continue|y va)|allez|à présent|l'heure|il est temps|reste à|je m'en charge|en cours|lançons|"
                r"au travail|direction)\b"
            ),
            (
                r"^(?:recherche|vérification|lecture|exécution|lancement|chargement|analyse|mise à jour|création|installation|téléchargement) .*(?:…|"
                r"\.\.\.|:|en cours)$"
            ),
        ),
        (
            r"(?<!voir )(?<!vérifier )(?<!vérifie )(?<!regarder )(?<!savoir )\bsi (?:vous|tu|besoin|cela|ça|c'est|jamais|nécessaire|on|le besoin)\b",
            (
                r"\b(?:(?:dès|une fois) que (?:vous|tu|j'aurai votre)|quand (?:vous|tu)|lorsque (?:vous|tu)|n'hésite|dites-moi|dis-moi|faites-moi|"
                r"fais-moi|j'espère|volontiers|avec plaisir|à l'avenir|désormais|ravie? de|je serai|à votre disposition|en cas de besoin|aimerais|"
                r"pourrais|voudrais)"
            ),
            r"^(?:envoie|envoyez|partage|partagez|indique|indiquez|donne|donnez|choisis|choisissez)\b",
        ),
        r"\b(?:s'il (?:te|vous) plaît|peux-tu|pouvez-vous|pourriez-vous|veux-tu|voulez-vous|envoyez|envoie|quel|quelle|partagez|dites-moi|souhaitez-vous)\b",
        (
            r"(?:(?:juste |encore )?(?:un|une) (?:instant|moment|seconde|minute|petite? \w+)(?:,? (?:s'il (?:te|vous) plaît|je vous prie))?|(?:veuillez )?patient\w+.*|"
            r"(?:cela|ça) (?:peut|va|devrait) prendre .*|je reviens(?: tout de suite)?|merci de (?:votre|ta) patience)"
        ),
        r"^(?:(?:et|maintenant|ensuite),? )*(?:prochaine étape|étape suivante|ensuite|la suite|au suivant) ?: \S",
        when=r"\b(?:dès|aussitôt|une fois) (?:que|qu')|(?:^|, )(?:quand|lorsqu\w*|si)\b",
    ),
    Language(
        "es",
        (
            f"archivo página error hacer hecho muy también sin sobre antes después todos todo si esta este estos pero o donde cuando porque ser "
            f"son fue ha he has tengo nuestro usted ustedes vamos hay correo copia procedo procederé prueba pruebas el la los las y es de un una "
            f"para que en voy con por no lo se ahora me te su al del más está tu como ya {_ES_SMALL} {_ES_NOT}"
        ),
        "ñ ¿ ¡ á é í ó ú",
        (
            r"^(?:(?:y|bien|ahora|bueno|entonces|luego),? )*(?:seguimos|continuamos|proseguimos|empezamos|comenzamos|retomamos)\b",
            rf"\b(?:voy|vamos) a (?:(?:ahora|primero|también) )?{but(_ES_SAY)}\w",
            (
                rf"(?:{_ES_LEAD}|\b(?:y|que|te|lo|la|le|se|los|las|os|me|nos) ){_ES_PRONOUN}(?!seré|estaré|podré|esperaré|responderé|procuraré|intentaré (?:ser|"
                rf"no)|evitaré)\w+ré\b"
            ),
            rf"{_ES_LEAD}{_ES_PRONOUN}(?!{_O_NOUNS}){_ES_PARTICIPLE}"
            + but(_O_NOT)
            + r"\w{2,}o\b(?! (?:es|está|son|fue|era|que (?:es|la|el|los|las|no|tu|esto|eso|se)|de que)\b)",
            r"\b(?:te|le|os|les) (?:recuerdo|aviso|escribo|informo|digo algo|mantengo|cuento|contacto)\b(?! que (?:el|la|no|es|los))",
            r"\bprocedo a\b|\bprocederé\b|\bdame un (?:segundo|momento|minuto|rato|instante)\b",
            r"\bestoy (?:\w+ )?(?!esperando|usando|suponiendo|hablando|pensando|siendo|teniendo|asumiendo|de acuerdo|aquí|seguro|segura)\w+ndo\b",
            (
                r"\b(?:necesito|tengo que|debo|hay que|me falta|me toca|ahora toca|toca|queda por|quiero|he de) (?:(?:primero|ahora|también|antes) )?(?!saber|"
                r"que (?:me|tú|usted)|de tu|tu\b|más|decir|advertir|pedir|aclarar|un |una |el |la |los |recordar|ser|confirmar contigo|reconocer|señalar|"
                r"agradecer)\w+(?:r|rlo|rla|rlos|rme|rle|rse)\b"
            ),
            r"\b(?:déjame|déjeme|permíteme|permítame|deja que|déjenme)\b(?! (?:saber|decir|explic|aclar|resumir|saberlo))",
            (
                r"^(?:(?:y|bien|bueno|entonces|ahora|vale|perfecto|de acuerdo|luego),? )*(?:pasemos|pasamos|veamos|sigamos|empecemos|comencemos|"
                r"continuemos|manos a la obra|es hora de|hora de|vamos (?:con|allá|por|al)|allá voy|a por|a continuación|turno de|en ello|marchando|"
                r"enseguida|en camino|es el turno)\b"
            ),
            r"^\w+ndo .*(?:…|\.\.\.|:|\bahora\W*)$",
        ),
        (
            (
                r"(?<!ver )(?<!comprobar )(?<!verificar )(?<!revisar )(?<!mirar )(?<!saber )\bsi (?:quieres?|lo|necesitas?|te|le|me|hay|desea|deseas|"
                r"prefieres?|algo|tienes|es así|no|hace|surge|usted|gustas|así)\b"
            ),
            (
                r"\b(?:en cuanto (?:me|tú|tengas|envíes|usted|lo|puedas)|cuando (?:quieras|me|tengas|lo|quiera|puedas|estés|usted)|una vez que (?:me|"
                r"tengas|hayas)|avísame|avíseme|dime|dígame|hazme|espero|no dudes|quedo a|quedo en|encantad|estaré|puedo|podría|me gustaría|a partir de ahora|"
                r"en el futuro|nunca|con gusto|por si|elegiría)"
            ),
            r"^(?:envía|envíame|comparte|indica|dame(?! un)|elige|pega|mándame)\b",
        ),
        r"\b(?:por favor(?!,? espera)|puedes|podrías|puede|quieres|quiere que|envíame|envía|comparte|cuál|dime|me pasas)\b",
        (
            r"(?:(?:solo )?(?:un|dame un|deme un) (?:momento|momentito|segundo|instante|minuto|rato)(?:,? por favor)?|espera(?:me)?(?: un .*)?|espere .*|"
            r"ahora vuelvo|(?:esto )?puede tardar.*|gracias por (?:tu|su) paciencia)"
        ),
        r"^(?:(?:y|ahora|entonces),? )*(?:siguiente(?: \w+)?|lo siguiente|a continuación|próximo paso|ahora|vamos con lo siguiente): \S",
        when=r"\ben cuanto\b|\buna vez que\b|(?:^|, )(?:cuando|si)\b|\bcuando (?:\w+ )?\w+[ea]\b(?!do)",
    ),
    Language(
        "pt",
        (
            f"arquivo página erro fazer feito muito também sem sobre antes depois todos tudo se esta este isso isto mas ou onde quando porque ser "
            f"são foi tem tenho nosso vocês há seu sua pela pelo ao aos às num numa ele ela eles uns cópia dos das o a os as e de um uma para que "
            f"em vou com por não do da no na se agora me você seu mais está como já foi são {_PT_SMALL} {_PT_NOT}"
        ),
        "ã õ ç á é í ó ú â ê ô à",
        (
            r"^(?:(?:e|bem|agora|bom|então|depois),? )*(?:seguimos|continuamos|prosseguimos|começamos|retomamos)\b",
            rf"\b(?:vou|vamos) (?:(?:agora|primeiro|já|começar a|também|te|lhe|me|então|logo) )*{but(_PT_SAY)}\w+[aeio]r\b(?! (?:à disposição|aqui|feliz))",
            (
                rf"(?:{_PT_LEAD}|\b(?:e|que|te|lhe|o|a|os|as|me) ){_PT_PRONOUN}(?!\w*(?:tir|vir|par|ger|alter|consider|recuper|liber|esper|oper|super|"
                rf"gir|mir|jur|dur|procur|configur|melhor|compr|mostr|contr|encontr|filtr|entr|registr|integr|administr)ei\b|serei|estarei|poderei|"
                rf"ficarei|esperarei|aguardarei)\w+rei\b"
            ),
            rf"{_PT_LEAD}{_PT_PRONOUN}(?!{_O_NOUNS}){_ES_PARTICIPLE}"
            + but(_O_NOT)
            + r"\w{2,}o\b(?! (?:é|está|são|foi|era|que (?:é|a|o|os|as|não|seu|isso|se))\b)",
            r"\b(?:te|lhe|vos) (?:lembro|aviso|escrevo|informo|conto|digo quando|mantenho|retorno)\b(?! que (?:o|a|não|é|os))|\bprocedo\b",
            r"\bestou (?:\w+ )?(?!usando|pensando|falando|sendo|tendo|querendo|entendendo|vendo|esperando|aguardando|supondo)(?:\w+ndo|a \w+r)\b",
            (
                r"\b(?:preciso|tenho que|tenho de|devo|é preciso|falta(?:-me)?|resta(?:-me)?|quero|hei de) (?:(?:primeiro|agora|também|antes|ainda|"
                r"de) )*(?!saber|que (?:você|me)|seu|sua|mais|dizer|avisar|pedir|esclarecer|um |uma |lembrar|ser|reconhecer|agradecer|confirmar com)\w+r(?:-\w+)?\b"
            ),
            r"\b(?:deixe-me|deixa-me|deixa eu|deixe eu|deixem-me|permita-me|me deixa|me deixe)\b(?! (?:saber|dizer|explicar|esclarecer|resumir))",
            (
                r"^(?:(?:e|bem|bom|então|agora|ok|certo|perfeito|depois),? )*(?:passemos|passamos|vejamos|comecemos|continuemos|sigamos|vamos (?:ao|"
                r"à|para|lá|ver|em frente|nessa)|mãos à obra|hora de|está na hora|é hora de|a seguir|em seguida|é a vez|já já|pode deixar|deixa comigo|"
                r"é pra já|partiu)\b"
            ),
            r"^\w+ndo .*(?:…|\.\.\.|:|\bagora\W*)$|\bem andamento ?(?:…|\.\.\.)$",
        ),
        (
            (
                r"(?<!ver )(?<!verificar )(?<!conferir )(?<!saber )(?<!testar )\b(?:se|caso) (?:quiser|quiseres|precisar|você|desejar|preferir|houver|"
                r"for|tiver|algo|não|sim|o senhor|surgir)\b|\bcaso (?!de)"
            ),
            (
                r"\b(?:me avise|avise-me|me diga|diga-me|diz-me|deixe-me saber|me deixe saber|me conte|a escolha|quando (?:você|quiser|puder)|(?:assim|"
                r"logo) que (?:você|me|tu|receber|tiver)|nunca|posso|poderia|espero|fico (?:à|no|feliz|aqui)|à disposição|gostaria|estarei|ficarei|daqui para a frente|"
                r"no futuro|com prazer|ficaria)\b"
            ),
            r"^(?:por favor,? )?(?:envie|envia|mande|manda|compartilhe|informe|me envie|me mande|escolha|cole)\b",
        ),
        r"\b(?:por favor(?!,? aguarde)|você (?:pode|poderia)|poderia|pode me|quer que|envie|mande|compartilhe|qual|me diga|podes)\b",
        (
            r"(?:(?:só )?um (?:momento|momentinho|instante|segundo|minuto|minutinho)(?:,? por favor)?|aguarde.*|espera?e?(?: só)? um .*|já volto|"
            r"(?:isso |isto )?pode demorar.*|obrigad[oa] pela paciência)"
        ),
        r"^(?:(?:e|agora|então),? )*(?:próxim[oa](?: \w+)?|a seguir|em seguida|agora): \S",
        when=r"\b(?:assim|logo) que\b|(?:^|, )(?:quando|se|caso)\b",
    ),
    Language(
        "it",
        (
            f"file pagina errore fare fatto molto anche senza sopra prima dopo tutti tutto se questa questo ma o dove quando perché essere sono "
            f"stato ho hai ha nostro voi c'è alla allo agli della delle degli dei nella sulla vado faccio controllo te a parti test il la i gli "
            f"le e di un una per che in con non lo si ora mi ti adesso del della sono al dal più questo come tuo sto nel anche {_IT_SMALL} {_IT_NOT}"
        ),
        "ò ì ù à è é",
        (
            (
                rf"(?:{_IT_LEAD}|\b(?:e|che|ti|lo|la|li|le|mi|vi|ci|ne|gli) ){_IT_PRONOUN}(?!sarò|potrò|dovrò|resterò|rimarrò|cercherò di essere|aspetterò|"
                rf"risponderò|eviterò|però|ciò)\w+rò\b"
            ),
            rf"{_IT_LEAD}{_IT_PRONOUN}(?!{_O_NOUNS}){_IT_PARTICIPLE}"
            + but(_O_NOT)
            + r"\w{2,}o\b(?! (?:è|sono|era|che (?:il|la|i|le|non|sia|questo|tu)|di aver)\b)",
            r"\bsto (?:\w+ )?(?!usando|pensando|parlando|dicendo|avendo|aspettando|supponendo)\w+ndo\b|\bsto per (?!dire)\w+|\bdo (?:un|una|uno) (?:sguardo|occhiata|letta)|\bdammi un (?:secondo|minuto|attimo|momento)",
            r"\b(?:ti|le|vi) (?:ricordo|avviso|scrivo|faccio sapere|aggiorno|informo|dico (?:appena|quando)|contatto|tengo)\b(?! che (?:il|la|non|è))",
            rf"\b(?:vado|andiamo|procedo|inizio|comincio|passo|continuo|provo|torno) (?:ora |subito )?(?:a|ad|con|da|al|alla|all'|ai) ?{but(_IT_SAY)}",
            (
                r"\b(?:devo|bisogna|mi serve|mi resta da|resta da|mi tocca|ho bisogno di|voglio|vorrei) (?:(?:prima|ora|ancora|anche|solo|poi) )*(?!sapere|"
                r"che tu|il tuo|dire|dirti|chiederti|ammettere|precisare|essere|sottolineare|ringraziar|un |una |il |la |ricordare)\w+(?:re|rlo|"
                r"rla|rli|rmi|rne|r)\b"
            ),
            r"\b(?:fammi|lasciami|mi lasci|mi faccia|permettimi di|mi permetta di|lasciatemi)\b(?! (?:sapere|capire se|spiegare|riassumere|dire))",
            (
                r"^(?:(?:e|bene|allora|ora|ok|perfetto|d'accordo|poi|adesso),? )*(?:passiamo|andiamo|vediamo|proseguiamo|cominciamo|iniziamo|continuiamo|"
                r"procediamo|mettiamoci|all'opera|è (?:ora|il momento) di|tocca|si (?:passa|parte|comincia)|ci penso io|arrivo|al lavoro|provvedo|"
                r"a seguire|ora tocca|è il turno)\b|^passiamo all'"
            ),
            r"^\w+ndo .*(?:…|\.\.\.|:)$|\bin corso ?(?:…|\.\.\.)$",
        ),
        (
            (
                r"(?<!vedere )(?<!verificare )(?<!controllare )(?<!capire )\bse (?:vuoi|vuole|volete|hai|ha|ti|le|preferisci|necessario|serve|hai bisogno|"
                r"desideri|qualcosa|non|lo desideri|mi)\b"
            ),
            (
                r"\b(?:fammi sapere|mi faccia sapere|fatemi sapere|dimmi|mi dica|quando (?:vuoi|vuole|mi|sei|puoi)|(?:non )?appena (?:mi|tu|avrai|"
                r"hai|ricevo|avrò)|una volta che (?:mi|avrai|hai)|mai|posso|potrei|spero|resto (?:in|a)|rimango|a disposizione|sarei|felice di|volentieri|"
                r"in futuro|d'ora in poi|sceglierei|non esitare|sarò|eventualmente)\b"
            ),
            r"^(?:per favore,? )?(?:inviami|mandami|condividi|indicami|scegli|incolla|dammi(?! un))\b",
        ),
        r"\b(?:per favore(?!,? attend)|puoi|potresti|può|vuoi|vuole che|inviami|mandami|condividi|quale|dimmi)\b",
        (
            r"(?:(?:solo )?(?:un|dammi un) (?:attimo|attimino|momento|istante|secondo|minuto)(?:,? per favore)?|attend\w+.*|aspetta.*|torno subito|"
            r"(?:potrebbe|può) (?:volerci|richiedere).*|grazie per la pazienza)"
        ),
        r"^(?:(?:e|ora|adesso|poi),? )*(?:prossim[oa](?: \w+)?|a seguire|ora|adesso): \S",
        when=r"\bappena\b(?! (?:eseguito|finito))|\buna volta che\b|(?:^|, )(?:quando|se)\b",
    ),
    Language(
        "ro",
        (
            f"fișier pagină eroare face făcut foarte fără înainte după toate tot dacă această acest dar sau unde când ești suntem avem noastre veți "
            f"pot are meu mea lui ei lor și-a cel cea către prin și este de un o pentru că în cu să nu la voi acum am pe mai din ce îți sunt fi te "
            f"se ai dacă {_RO_SMALL} {_RO_NOT}"
        ),
        "ă â î ș ț ş ţ",
        (
            (
                rf"{_RO_LEAD}{_RO_PRONOUN}(?:scot|ordonez|pun|trimit|deschid|culeg|extrag|înlocuiesc|îmbin|unesc|împart|golesc|aduc|cer|termin|finalizez|"
                rf"sortez|export|import|creez|consult|lipesc|tai|redau|desfac|leg)\b"
            ),
            (
                r"\b(?:voi|vom) (?!(?:fi |avea nevoie|putea|rămâne|explica|spune că))\w+|\bo să (?!fie|fiu|ai|vezi|îți placă|te|mai|\w+(?:i|ești|ți)\b)\w+|"
                r"\bam să (?!\w+ (?:spun|explic))\w+|\burmează să (?!\w+(?:i|ești|ți)\b)\w+|\bvoi avea .*\bgata\b"
            ),
            rf"{_RO_LEAD}{_RO_PRONOUN}"
            + but(_RO_NOT)
            + (
                r"(?:\w+(?:ez|esc|ăsc|uc|eau|ii)|continui|revin|refac|fac|încep|încerc|caut|ocup|verific|adaug|rezerv|anunț|citesc|scriu|deschid|"
                r"trimit|iau|pun|aplic|mut|șterg|aleg|adun|calculez|merg|trec|pregătesc|pornesc|repornesc|completez|corectez|explorez|uit|apuc|dau|"
                r"rulez|strâng|reiau|întreb|sun|compar|traduc|extrag|inspectez|repar|pun|schimb|salvez|notez|ajustez|descarc|încarc|confirm|reîncerc|"
                r"execut|elimin|grupez|identific|modific|clarific|public|comand|setez|lansez)\b"
            ),
            r"\b(?:îți|vă|te) (?:voi )?(?:reamintesc|reaminti|amintesc|scriu|anunț|dau de știre|țin la curent|sun)\b",
            (
                r"\b(?:acum|mai întâi|întâi|apoi|încă|doar) (?:trebuie|vreau) să (?!\w+(?:i|ești|ți|eți)\b)\w+|\btrebuie să (?:mai |mă |o |îl |le |întâi )*(?!știu|"
                r"spun|menționez|întreb)(?:\w+(?:ez|esc)|văd|fac|verific|citesc|caut|scriu|înțeleg|iau|aflu|deschid|rulez|schimb|pun|refac)\b|\bam nevoie să (?!știu|"
                r"îmi)\w+"
            ),
            r"\b(?:lasă-mă|lăsați-mă|permite-mi|permiteți-mi)\b(?! să (?:știu|explic|spun|îți explic|clarific))",
            (
                r"^(?:(?:și|bine|deci|acum|ok|perfect|atunci),? )*(?:să (?:trecem|vedem|începem|continuăm|mergem|verificăm|aruncăm|rulăm)|e timpul|este timpul|"
                r"mai departe|trecem|mergem mai|continuăm|la treabă|urmează|imediat|se (?:rezolvă|face)|pe loc|acum la)\b"
            ),
            r"\bsunt (?:pe cale să|în curs de)\b|^(?:se |în curs de )\w+ .*(?:…|\.\.\.)$",
        ),
        (
            (
                r"(?<!văd )(?<!verific )(?<!vedea )(?<!verifica )\b(?:dacă (?:vrei|vreți|dorești|doriți|ai|aveți|e nevoie|este nevoie|mai|preferi|nu|"
                r"îmi|este|e cazul|ceva)|imediat ce (?:îmi|ai|aveți|primesc)|când (?:îmi|vrei|ești|dorești|veți|vei|ai|vreți)|după ce (?:îmi|ai|aveți)|"
                r"odată ce (?:îmi|ai)|spune-mi|spuneți-mi|anunță-mă|anunțați-mă|sper|aștept|cu plăcere|cu drag|aș|pot|putea|pe viitor|de acum înainte|"
                r"nu ezita|niciodată|nu voi|bucura|oricând)\b"
            ),
            r"^(?:trimite|trimiteți|alege|alegeți|indică|dă-mi)\b",
        ),
        r"\b(?:te rog(?! așteaptă)|vă rog(?! așteptați)|poți|puteți|vrei să|doriți să|trimite|trimiteți|care dintre|spune-mi|spuneți-mi)\b",
        (
            r"(?:(?:doar )?(?:o clipă|un moment|o secundă|un minut|o clipită|un pic|puțină răbdare)(?:,? (?:te|vă) rog)?|așteaptă.*|așteptați.*|"
            r"revin imediat|(?:poate|va) dura.*|mulțumesc pentru răbdare)"
        ),
        r"^(?:(?:și|acum|apoi),? )*(?:următorul(?: \w+)?|următoarea(?: \w+)?|urmează|pasul următor|mai departe): \S",
        when=r"\b(?:imediat|de îndată) ce\b|\bodată ce\b|(?:^|, )(?:când|dacă)\b",
    ),
)
