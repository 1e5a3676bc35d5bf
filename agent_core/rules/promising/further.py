"""Finnish, Hungarian, Greek, Turkish, Indonesian, Vietnamese and Swahili; see `language`."""

from __future__ import annotations

from agent_core.rules.promising.language import Language, any_of, but, lead

_FI_SMALL = (
    "iltapäivällä illalla myöhemmin pian perjantaina maanantaina huomisaamuna lisäksi tunnin~päästä aamulla ja nyt sitten ensin seuraavaksi "
    "joten selvä hyvä ok okei siis minä heti tässä lopuksi niin vielä kiitos ensiksi aluksi saman~tien huomenna tänään välittömästi "
    "samalla mutta nyt~kun"
)
_FI_LEAD = lead(_FI_SMALL)
_FI_NOT = (
    "näen muistan huomaan arvaan toivotan jätän olen luulen uskon toivon voin haluan~(?:vain|sanoa) tiedän ymmärrän suosittelen ehdotan "
    "pahoittelen odotan kiitän arvelen oletan näen~että tunnen en vain ihan kuin niin sen tämän minun sinun kun myös sekä näin eilen "
    "huomenna aivan melkein kovin paljon enemmän yhteensä hyvin oikein uudelleen kuitenkin mielestäni muun yhden kaikkien seuraavan ensimmäisen "
    "toisen viimeisen lisäksi vaikka"
)
_HU_SMALL = (
    "délután este később hamarosan pénteken hétfőn ezenkívül egy~óra~múlva reggel és most akkor először ezután aztán rendben jó oké "
    "ok értem világos ezért tehát én azonnal rögtön gyorsan újra még is majd holnap ma persze természetesen köszönöm közben hát igen "
    "máris tovább nos szuper~ is~ ötkor hatkor holnap~reggel utána következőként emellett"
)
_HU_LEAD = lead(_HU_SMALL)
_HU_NOT = (
    "látok látom találok találom úgy~\\w+ sejtem emlékszem kívánok szerintem mindkettő \\w+(?:nak|nek) hagyom gondolom hiszem remélem tudom "
    "értem ajánlom javaslom kérem köszönöm sajnálom örülök várok várom szeretném~(?:tudni|megjegyezni) szeretnék~(?:segíteni|bocsánat) szeretem "
    "azt nem ilyen amilyen olyan milyen ezek azok ezen azon kérdések eredmények vagyok nincs sem ezt egyébként néhány akik amelyek sok több "
    "sem~ nekem velem engem téged önök adatok elnézésedet látom~(?:hogy|a) feltételezem tartok bocsánatot gratulálok javasolnám választanám "
    "használok ismerem emlékszem beszélek ok lényegében"
)
_EL_NOT = (
    "βλέπω βρίσκω παρατηρώ θυμάμαι φαντάζομαι αφήνω εγώ πάνω κάτω έξω γύρω μέσω λόγω πίσω παραπάνω παρακάτω εδώ αφού νομίζω πιστεύω ελπίζω "
    "προτείνω συνιστώ ευχαριστώ μπορώ θέλω~(?:απλώς|να~πω) ξέρω καταλαβαίνω περιμένω βλέπω~(?:ότι|πως) έχω υποθέτω προτιμώ παρακαλώ θεωρώ "
    "γνωρίζω αγαπώ συμφωνώ εύχομαι λυπάμαι χαίρομαι χρησιμοποιώ προς δύο συμβουλεύω φοβάμαι απαντώ αμφιβάλλω αναγνωρίζω εννοώ μιλώ μετά "
    "όλο μόνο μένω είμαι δεν μήπως ισχύω σου~εύχομαι επιβεβαιώνω~ότι"
)
_EL_SMALL = (
    "το~απόγευμα το~βράδυ αργότερα σύντομα την~παρασκευή τη~δευτέρα επιπλέον σε~λίγο το~πρωί και τώρα λοιπόν πρώτα μετά ύστερα έπειτα "
    "εντάξει οκ ωραία τέλεια κατάλαβα ναι επίσης άρα οπότε εγώ αμέσως γρήγορα τότε ακόμη ευχαριστώ βεβαίως φυσικά στη~συνέχεια αύριο "
    "σήμερα ξανά αλλά εδώ"
)
_EL_LEAD = lead(_EL_SMALL)
_EL_CLITIC = r"(?:(?:σου|σας|το|τα|τη|την|τον|τις|τους|του|της|με|μου|σε) ){0,2}+"
_TR_NOT = any_of(
    r"bırakıyorum bırakırım \S*düşünüyorum \S*umuyorum \S*sanıyorum \S*sanırım \S*biliyorum \S*bilirim \S*istiyorum \S*isterim öneriyorum "
    r"öneririm \S*bekliyorum (?:tavsiye|teşekkür|rica|tercih|tahmin|takdir|kabul|tebrik|ümit|memnun)~\S+ dilerim diliyorum \S*seviyorum "
    r"\S*severim \S*inanıyorum \S*anlıyorum \S*görüyorum \S*hatırlıyorum \S*kullanıyorum \S*abilirim \S*ebilirim \S*[ıiuü]m[ıi]yorum "
    r"\S*m[ıiuü]yorum \S*mam \S*mem \S*mayacağım \S*meyeceğim \S*kalıyorum çalışırım yardımcı~\S+ seviniyorum sevinirim olurum \S*buluyorum "
    r"varsayıyorum hissediyorum özür~dilerim üzgünüm eminim"
)
_ID_NOT = (
    "sudah telah rasa pikir kira yakin harap sarankan bisa dapat tidak belum tahu mengerti paham senang lebih tunggu menunggu minta mohon rekomendasikan menyarankan merekomendasikan di siap setuju memahami percaya suka menemukan melihat~bahwa selalu pun ini hanya juga~(?:bisa|"
    "tidak|senang) ucapkan maksud usulkan mengusulkan menganggap berharap minta maaf sebagai butuh~(?:info|anda|jawaban|detail|konfirmasi) perlu~(?:info|"
    "anda|jawaban|konfirmasi|tahu) akan~(?:selalu|senang|dengan~senang|menunggu|memilih|menyarankan|tetap) harus~(?:akui|mengakui|menolak|"
    "bilang|jujur) ingin~(?:tahu|menekankan|bilang|menambahkan~bahwa) menggunakan memakai adalah jelaskan jawab rangkum ulangi~bahwa"
)
_VI_NOT = (
    "đã nghĩ tin hy~vọng có không chưa khuyên đề~xuất gợi~ý hiểu biết rất mong nên xin~lỗi thấy cho~rằng vừa luôn vui là chỉ được ở cảm cũng~(?:có~thể|"
    "nghĩ|không|thấy) sẵn~sàng muốn~(?:nói|biết|nhấn|hỏi|lưu) sẽ~(?:chọn|luôn|không|vui|ở|rất|giải~thích) cần~(?:biết|bạn|thêm|anh|"
    "chị|bạn) phải~(?:nói|thừa|từ~chối|xin) đoán e nhớ dùng thích giả~định đồng~ý tưởng"
)
_SW_NOT = (
    "naona nahisi nakumbuka naomba nadhani nafikiri natumaini natumai nasubiri nashukuru napendekeza naweza najua naelewa namna nafasi "
    "nambari namba nakala nakutakia napenda ninapenda ninadhani ninafikiri ninatumaini ninaweza ninajua ninaelewa ninapendekeza ninasubiri "
    "ninashukuru naam naamini ninaamini nakubali ninakubali nasikitika nashauri ninashauri natumia ninatumia naona~kuwa nina nasema~tu "
    "nawatakia napendelea nahisi nafurahi ninafurahi nakumbuka nakushauri nakiri nawe nanyi nasi nao nayo nalo nacho nazo namaanisha "
    "nafuu"
)

FURTHER = (
    Language(
        "fi",
        (
            f"tiedosto sivu virhe tehdä hyvin ilman ennen kaikki tämä nämä tuo mutta tai missä koska olla oli meidän teidän kanssa vain uusi yksi "
            f"kaksi sinulle minulle voit tulee tehty mukaan myös ja on ei että se en nyt sen ole mutta tai kun niin jos voi mitä olet sinun minä "
            f"ovat oli tämä myös sitten vielä {_FI_SMALL} {_FI_NOT}"
        ),
        "ä ö",
        (
            (
                rf"{_FI_LEAD}{but(_FI_NOT)}(?:\w+(?:stan|stän|itan|itän|utan|ytän|autan|ättän|ilen|telen|oitan|öitän|ennan|ennän|aan|ään|noin|illän|tän|"
                rf"tan|pean|llen|iudun|audun|ädyn|udun|ydyn|dun|dyn)|jatkan|etsin|luen|ajan|haen|teen|katson|avaan|tutkin|kirjoitan|siirryn|palaan|hoidan|"
                rf"lähden|otan|pyydän|korjaan|panen|vien|tuon|kysyn|selvitän|yritän|ryhdyn|alan|käyn|menen|testaan|lasken|piirrän|lisään|luon|annan|teenkin|"
                rf"aloitan|ilmoitan|kerron|jaan|poimin|tarkennan|kaivan|soitan|tilaan|muokkaan|vaihdan|puran|pakkaan|suoritan|seuraan|noudan|kopioin|päivitän|"
                rf"koodaan|viimeistelen|paneudun|kokoan|järjestän|tiivistän|pyöräytän|hyppään|kaivelen|vilkaisen|asennan|sovitan|rakennan)\b(?!,? että)"
            ),
            (
                r"\b(?:aion|ajattelin|meinaan|pyrin)\b|\b(?:minun|mun) (?:\w+ )?(?:täytyy|pitää|on (?:ensin|vielä|nyt))|\btarvitsee (?:ensin|vielä)|"
                r"\b(?:minulta|minulla) .*\bvalmiina\b|\bsaat .*\b(?:huomisaamuksi|huomenna|pian|kohta|hetken)\b"
            ),
            r"\b(?:anna|antakaa|salli) (?:minun|kun|mun)\b(?! (?:tietää|selittää))",
            (
                r"^(?:(?:ja|nyt|no|hyvä|ok|okei|selvä|sitten|seuraavaksi),? )*(?:katsotaan|siirrytään|aloitetaan|jatketaan|mennään|tarkistetaan|kokeillaan|"
                r"tehdään|otetaan|aika (?!paljon|hyv)\w+|on aika|vuorossa|seuraavana|hoituu|työn alla|käynnistetään|haetaan|luetaan|ajetaan|eteenpäin|"
                r"homma hoituu)"
            ),
            r"^\w+(?:taan|tään) .*(?:…|\.\.\.)$",
        ),
        (
            (
                r"\b(?:jos|mikäli|heti kun (?:lähetät|saan|olet|annat|kerrot)|kun (?:lähetät|olet|saan sinulta|vastaat|annat|kerrot)|kerro(?:thän)?\b|"
                r"sano(?:thän)?\b|valitse\b|ilmoita\b|lähetä\b|odotan\b|toivottavasti|toivon|mielelläni|voisin|voin|tulevaisuudessa|jatkossa|älä epäröi|"
                r"ota yhteyttä|isin\b|\w+isin\b)"
            ),
        ),
        r"\b(?:voitko|voisitko|haluatko|lähetä|kerro|mikä|kumpi|kumman|pitäisikö|ole hyvä ja)\b",
        (
            r"(?:(?:pieni |vain |ihan )?(?:hetki|hetkinen|sekunti|minuutti|silmänräpäys)(?: vain)?(?:,? kiitos)?|odota.*|odotahan.*|palaan pian|"
            r"(?:tämä|siinä) (?:voi|kestää|menee).*|kiitos kärsivällisyydestä.*)"
        ),
        r"^(?:(?:ja|nyt),? )*(?:seuraavaksi|seuraava(?: \w+)?|vuorossa): \S",
        when=r"\b(?:heti )?kun\b|(?:^|, )(?:jos|mikäli)\b",
    ),
    Language(
        "hu",
        (
            f"fájl oldal hiba nagyon nélkül előtt minden ez ezek az vagy hol mikor lesz lett volt mi ti önök csak új két neked nekem lehet kell "
            f"tovább után alatt között szerint szerintem kellene vonattal a az és nem hogy is egy van ez ha de meg csak már most volt fog vagy mert "
            f"mint ezt azt el ki be {_HU_SMALL} {_HU_NOT}"
        ),
        "ő ű á é í ó ú ö ü",
        (
            r"^(?:(?:és|most|akkor|jó),? )*(?:folytatjuk|kezdjük|továbblépünk|visszatérünk)\b|\bnekiáll(?:ok|unk)\b|\bhozzálátok\b",
            (
                rf"{_HU_LEAD}(?:(?:ezt|azt|meg|el|ki|be|le|fel|át|rá|össze|vissza|meg is|neki|nekem) )*{but(_HU_NOT)}\w{{2,}}(?:om|em|öm|ok|ek|ök|lak|"
                rf"lek|áll?ok|ám)\b(?!,? hogy\b)"
            ),
            (
                r"\b(?:fogom|fogok|foglak|megyek|kezdem|próbálom|folytatom|megnézem|ellenőrzöm|utánanézek|visszatérek|jelentkezem|szólok|értesítelek|"
                r"elkészítem|lefuttatom|újraindítom|készen leszek|kész leszek)\b(?!.*\bha\b)"
            ),
            r"\b(?:meg kell|el kell|ki kell|le kell|be kell|át kell|fel kell|kell) (?:még |előbb |most )*\w+(?:nom|nem|nöm)\b|\bkell \w+(?:nom|nem|nöm)\b",
            r"\b(?:hadd|engedd meg,? hogy|engedje meg,? hogy)\b(?! (?:magyarázzam|mondjam|tudjam))",
            (
                r"^(?:(?:és|most|akkor|na|jó|oké|ok|rendben|nos),? )*(?:térjünk|(?!van|nincs|tudunk)\w+(?:junk|jünk|suk|sük|juk|jük|zuk|zük|ssunk|ssünk)|"
                r"nézzük|lássuk|kezdjük|folytassuk|menjünk|lépjünk|vegyük|ideje|itt az idő|jöhet|következzen|következik|rajta vagyok|intézem|máris|azonnal|"
                r"munkára|folytatás)\b"
            ),
            r"^\w+(?:ás|és) (?:folyamatban|alatt).*(?:…|\.\.\.)$",
        ),
        (
            (
                r"(?<!látom, )\b(?:ha (?!.*(?:elkészült|kész\b|végzett|lefutott))|amint (?:elküld|megad|megkap|megvan a vál|jelzed)|amikor (?:elküld|"
                r"készen állsz)|miután (?:elküld|megad)|mondd|mondja|szólj|küldd|küldje|várom|remélem|örülök|szívesen|soha|tudok|tudnék|tudom|a jövőben|"
                r"mostantól|bármikor|ne habozz|esetleg|\w+(?:nám|ném|nék|nánk)\b)"
            ),
        ),
        r"\b(?:kérlek(?! várj)|kérem(?! várj)|tudnál|tudna|szeretnéd|szeretné|küldd|küldje|melyik|melyiket|mondd|szólj)\b",
        (
            r"(?:(?:csak )?(?:egy |még egy )?(?:pillanat|perc|másodperc|kis türelmet|türelem|pillanatot)(?:,? kérek|,? kérem)?|várj.*|várjon.*|"
            r"mindjárt jövök|(?:ez )?(?:eltarthat|beletelhet).*|köszönöm a türelm.*)"
        ),
        r"^(?:(?:és|most),? )*(?:következő(?: \w+)?|jön|a következő(?: \w+)?|tovább): \S",
        when=r"\bamint\b|(?:^|, )(?:ha|amikor|miután)\b",
    ),
    Language(
        "el",
        "",
        "",
        (
            r"^(?:(?:και|τώρα|λοιπόν),? )*(?:συνεχίζουμε|προχωρούμε|αρχίζουμε|περνούμε|επιστρέφουμε)\b",
            (
                rf"(?:^|[\s,·;(])(?:θα|να) {_EL_CLITIC}(?:(?:τώρα|πρώτα|μετά|ξανά|αμέσως) )?(?!είμαι|ήθελα|χαρώ|έλεγα|πω|μπορώ|προτιμούσα|περιμένω|απαντήσω|"
                rf"εξηγήσω|θυμάμαι|παραμείνω|χρειαστώ)(?<!που θα )(?:ξανα)?\w+(?:ω|ώ|άω|ομαι|ώμαι|άμαι|ιέμαι)\b(?<!έχω)"
            ),
            r"\bθα (?:σου |σας )?έχω .*\b(?:έτοιμ\w+|σήμερα|αύριο|ως|μέχρι)\b",
            rf"{_EL_LEAD}{_EL_CLITIC}{but(_EL_NOT)}(?:ξανα)?\w{{2,}}(?:ω|ώ|άω|ομαι|ούμαι|άμαι)\b(?! (?:ότι|πως)\b)",
            (
                rf"\bας {_EL_CLITIC}(?!πω|πούμε ότι)\w+(?:ω|ώ|ουμε|ούμε)\b|\b(?:άσε με|άφησέ με|αφήστε με|επιτρέψτε μου|επίτρεψέ μου) (?!να (?:ξέρω|"
                rf"εξηγήσω|πω|διευκρινίσω))"
            ),
            (
                r"\b(?:πρέπει|χρειάζεται|μένει|απομένει|θέλω|σκοπεύω|πάω|πρόκειται|ξεκινώ|ξεκινάω|συνεχίζω) (?:πρώτα |τώρα |ακόμη )?να (?!ξέρω|πω|ομολογήσω|"
                r"τονίσω|ρωτήσω|ευχαριστήσω|αρνηθώ)\w+(?:ω|ώ|άω)\b"
            ),
            (
                r"^(?:(?:και|τώρα|λοιπόν|εντάξει|ωραία|οκ),? )*(?:πάμε|προχωράμε|προχωρώ|περνάμε|ας |ώρα (?:να|για)|ήρθε η ώρα|σειρά έχει|στο επόμενο|"
                r"αμέσως|ξεκινάμε|συνεχίζουμε|έρχεται|επί το έργο)\b"
            ),
        ),
        (
            (
                r"(?<!δω )(?<!ελέγξω )(?<!διαπιστώσω )\b(?:αν|εάν|μόλις (?:μου|στείλ|έχεις|έχετε|λάβω)|όταν (?:μου|εσύ|είσαι|στείλ|είστε|θέλεις)|αφού (?:μου|"
                r"στείλ)|πες μου|πείτε μου|μη διστάσ|ελπίζω|περιμένω|μπορώ|με χαρά|ποτέ|ενημέρωσέ με|ενημερώστε με|στείλε|στείλτε|στο μέλλον|από εδώ και πέρα|"
                r"πάντα|θα ήθελα|δεν θα|ευχαρίστως|διάλεξε|επίλεξε)\b"
            ),
        ),
        r"\b(?:παρακαλώ(?! περιμέν)|μπορείς|μπορείτε|θέλεις|θέλετε|στείλε|στείλτε|ποιο|ποια|ποιον|πες μου|πείτε μου|να ξεκινήσω)\b",
        (
            r"(?:(?:μόνο )?(?:μια|μία|ένα|δώσε μου ένα) (?:στιγμή|στιγμούλα|λεπτό|λεπτάκι|δευτερόλεπτο)(?:,? παρακαλώ)?|περίμενε.*|περιμένετε.*|"
            r"επιστρέφω αμέσως|(?:μπορεί να|θα) (?:πάρει|χρειαστεί|διαρκέσει).*|ευχαριστώ για την υπομονή.*)"
        ),
        r"^(?:(?:και|τώρα),? )*(?:επόμεν\w+(?: \w+)?|στη συνέχεια|συνέχεια): \S",
        when=r"\b(?:μόλις|όταν|αφού)\b|(?:^|, )(?:αν|εάν)\b",
        script="el",
    ),
    Language(
        "tr",
        (
            "devam edelim geri dosya sayfa hata yap çok olmadan tüm her bu şu o ama veya nerede neden olacak oldu bizim sizin yeni iki sana bana kadar üzere göre "
            "gerekiyor hepsi işlem adım ve bir bu için ile de da ne var değil çok daha ben siz sen şimdi ama olarak gibi olan önce sonra tüm "
            "yok mi mı "
        ),
        "ğ ş ı ü ç ö",
        (
            rf"(?:^|\s)(?!{_TR_NOT}\W*$)\S*(?:[ıiuü]yorum|[ea]c[ea][gğ][ıi]m|[ea]y[ıi]m|[ea]l[ıi]m|(?<=[aeıioöuü])r[ıiuü]m|[ıiuü]r[ıiuü]m)\W*$",
            rf"(?:^|\s)(?!{_TR_NOT}[,;])\S*(?:[ıiuü]yorum|[ea]c[ea][gğ][ıi]m|[ea]y[ıi]m|[ea]l[ıi]m)[,;:–—]\s(?!.*(?:bilirim|misin|mısın|isterse|olursa))",
            r"\b\S+m[ae]m (?:gerek|lazım|gerekiyor|gerekecek)\b|\b\S+m[ae]l[ıi]y[ıi]m\b",
            r"\b(?:zamanı|vakti|sırası|sıra)\W*$|^(?:sıra(?:da)?|şimdi sıra|haydi|hadi|hemen (?:bakıyorum|geliyor)|bana bırak)\b",
            r"\b(?:izin ver(?:in)?|bırak(?:ın)?)\b(?!.*açıkla)|\S+(?:ıyor|iyor|uyor|üyor) ?(?:…|\.\.\.)$",
        ),
        (
            (
                r"\b(?:eğer|ister(?:se|seniz|sen)\S*|diler(?:se|sen|seniz)\S*|olursa\S*|gerekirse|söyle(?:yin|r|yebilir)?|gönder(?:in|ir|ir|diğin\S*|"
                r"diğiniz\S*)|yolla(?:yın|r)|paylaş(?:ın|ır)|belirt(?:in|ir)|seç(?:in|er)|yaz(?:ın)|(?<!dakika )(?<!saniye )(?<!bir an )lütfen(?! bekle)|"
                r"asla|bundan (?:sonra|böyle)|umarım|keşke)\b|\b(?:tavsiye|teşekkür|rica|tercih|tahmin|takdir|kabul|tebrik|ümit|memnun|memnuniyet|mutluluk|"
                r"seçimi|size bırak\w+|sana bırak\w+) \S+\W*$|\b(?:duyuyorum|duyarım)\W*$"
            ),
            (
                r"\S+(?:[ıiuü]rsan(?:ız|iz)?|[ea]rsen(?:iz)?|d[ıiuü]ğ[ıiuü]n(?:de|ızda|izde)|(?:tiğinizi|diğinizi|duğunuzu))\b|\S+[ae]bilirim\b|(?:gönderir göndermez|"
                r"verir vermez|bildirir bildirmez|onaylar onaylamaz)"
            ),
            r"\bm[ıiuü](?:sın|sin|yım|yim|y[ıi]m)?\W*$|\b(?:ben|bende) .*[ae]?rd[ıi]m\b",
        ),
        r"\b(?:lütfen(?! bekle)|misiniz|mısınız|ister misin|gönderin|gönder|paylaşın|söyleyin|söyle|hangi|hangisi)\b",
        (
            r"(?:(?:sadece )?(?:bir|lütfen bir|kısa bir) (?:dakika|dakikanızı|saniye|an|dk)(?: lütfen)?|lütfen bekleyin.*|bekleyin.*|biraz bekle.*|"
            r"hemen dönüyorum|(?:bu )?biraz (?:sürebilir|zaman alabilir).*|sabrın(?:ız)? için teşekkür.*)"
        ),
        r"^(?:(?:ve|şimdi),? )*(?:sıradaki(?: \S+)?|sırada|sonraki(?: \S+)?|bir sonraki(?: \S+)?): \S",
        when=r"\S+[ıiuü]nca\b|\S+ince\b|\S+ bitmez\b|\S+er [^ ]+mez\b",
    ),
    Language(
        "id",
        (
            f"berkas halaman kesalahan membuat sangat tanpa sebelum semua ini itu tetapi di mana kapan ada telah kita kalian baru dua kepada "
            f"bagi seperti hanya masih lagi dulu dapat harus langkah mereka tersebut sebuah dan yang di ini untuk dengan saya anda akan tidak "
            f"dari ke itu ada sudah atau bisa jika pada sekarang kami adalah karena juga lebih oleh aku kamu sebentar mari biar segera lalu nanti "
            f"baik {_ID_NOT}"
        ),
        "",
        (
            (
                rf"(?<!sudah )(?<!telah )(?<!yang )(?<!menurut )(?<!bagi )(?<!kepada )(?<!untuk )(?<!dari )(?<!ke )(?<!beri tahu )(?<!kabari )\b(?:saya|"
                rf"aku|kami) {but(_ID_NOT)}\w"
            ),
            r"\b(?:segera|langsung|sekarang|nanti|kemudian|lalu|akan|mau) (?:akan )?(?:saya|aku|kami|ku)(?:\w+)?\b(?! (?:bisa|sudah|tidak|senang))",
            r"\b(?:biar(?:kan)?|izinkan|ijinkan|perkenankan) (?:saya|aku|kami)\b(?! (?:tahu|jelaskan|menjelaskan|tegaskan))",
            (
                r"^(?:(?:dan|jadi|nah|oke|ok|baik|baiklah|sekarang|lalu|kemudian|selanjutnya|berikutnya),? )*(?:mari|ayo|yuk|saatnya|waktunya|lanjut|"
                r"sekarang giliran|giliran|langsung|segera|sedang \w+|akan (?!ada)\w+|kita (?:mulai|lanjut\w*|lihat|cek|coba|periksa)|menuju|coba (?:saya|"
                r"kita)|siap, )\b"
            ),
            r"^(?:sedang|mencari|memuat|menjalankan|memeriksa|membaca|mengambil|mengunduh|memproses) .*(?:…|\.\.\.)$",
        ),
        (
            (
                r"(?<!periksa )(?<!lihat )(?<!cek )\b(?:(?:jika|kalau|apabila|bila) (?:anda|kamu|mau|ingin|perlu|masih|ada|butuh|tidak|boleh|berkenan|"
                r"diinginkan|diperlukan)|begitu (?:anda|kamu)|setelah (?:anda|kamu)|saat (?:anda|kamu)|jangan ragu|beri ?tahu saya|kabari saya|kabari aku|"
                r"semoga|sebutkan|bilang|katakan|pilih|silakan|silahkan|dengan senang hati|tidak akan|selamanya|ke depannya|bisa saya|bisa aku|mohon|"
                r"kirim(?:kan)? (?:saya|ke saya|dulu)|tunggu masukan|tunggu kabar|tunggu tanggapan)\b"
            ),
        ),
        r"\b(?:tolong|mohon(?! tunggu| bersabar)|bisakah|bisa tolong|apakah|maukah|mau saya|kirimkan|pilih|yang mana|sebutkan|beri tahu)\b",
        (
            r"(?:(?:mohon |tunggu |harap |beri saya )?(?:sebentar|tunggu|sejenak|waktu sebentar|tunggu sebentar)(?: ya| saja)?|(?:tunggu|mohon tunggu|"
            r"harap tunggu|mohon bersabar).*|(?:ini )?(?:mungkin|akan) (?:perlu|butuh|memakan) .*|terima kasih atas kesabaran.*)"
        ),
        r"^(?:(?:dan|sekarang|lalu),? )*(?:berikutnya|selanjutnya|langkah (?:berikutnya|selanjutnya)|lanjut): \S",
        when=r"\b(?:begitu|setelah|kalau|jika|saat|ketika|apabila)\b",
    ),
    Language(
        "vi",
        (
            f"tệp trang lỗi làm rất mà trước tất cả này kia nhưng hay đâu bị chúng ta mới hai lại nào nên cũng như về ra vào đó đây còn thêm nhất "
            f"chạy bản hãy và là của tôi bạn không có được để cho này với một các đã sẽ đang trong thì rồi khi nếu mình em anh chị hãy từ {_VI_NOT}"
        ),
        "đ ơ ư ạ ả ấ ế ệ ộ ợ ữ ị ọ ủ ă â ê ô ầ ể ề ố ồ ớ ở ừ ử á à ã í ì ó ò õ ú ù ý é è",
        (
            rf"\b(?:tôi|mình|em|tớ) {but(_VI_NOT)}\w",
            r"\b(?:tôi|mình|em)\b.*\bsẽ (?:báo|nhắc|quay lại|gửi|cập nhật|thông báo|liên hệ)",
            r"\b(?:để|cho phép|hãy để) (?:tôi|mình|em)\b(?! (?:biết|giải thích|nói|làm rõ))",
            (
                r"^(?:(?:và|vậy|giờ|bây giờ|được rồi|ok|rồi|thế|nào|tiếp theo|sau đó|vâng|dạ),? )*(?:(?:chúng ta |ta )?(?:hãy |cùng |sẽ )?(?:chuyển|bắt đầu|"
                r"tiếp tục|tiếp theo|đi tiếp|xem thử|kiểm tra|qua bước|sang bước)|đến lúc|đã đến lúc|đang \w+|sẽ \w+|hãy .*\b(?:nào|thôi|nhé)$|tới lượt|"
                r"đến lượt|làm ngay)\b"
            ),
        ),
        (
            (
                r"\b(?:nếu|khi (?:bạn|anh|chị)|khi nào (?:bạn|anh|chị|cần)|ngay khi (?:bạn|anh|chị|nhận)|sau khi (?:bạn|anh|chị)|hãy cho (?:tôi|mình)|"
                r"cho (?:tôi|mình|em) biết|mong (?:nhận|bạn|được)|hy vọng|có thể|đừng ngần ngại|rất vui|sẵn (?:sàng|lòng)|từ nay|trong tương lai|vui lòng (?!chờ|"
                r"đợi)|nhé\?|hãy (?:gửi|nói|chọn|báo))\b"
            ),
        ),
        r"\b(?:vui lòng(?! chờ| đợi)|làm ơn|bạn có thể|bạn muốn|hãy gửi|cho tôi biết|cái nào|gửi cho tôi|có cần)\b",
        (
            r"(?:(?:xin |vui lòng |bạn )?(?:chờ|đợi)(?: (?:tôi|mình|một|chút|lát|xíu|giây|tí)).*|một (?:chút|lát|giây|phút)(?: nhé| thôi)?|(?:việc này |"
            r"có thể |sẽ )+mất .*|cảm ơn bạn đã (?:chờ|kiên nhẫn).*)"
        ),
        r"^(?:(?:và|giờ|bây giờ),? )*(?:tiếp theo|bước (?:tiếp theo|kế tiếp)|kế tiếp): \S",
        when=r"\b(?:khi(?: nào)?|nếu|ngay khi|sau khi)\b",
    ),
    Language(
        "sw",
        (
            f"faili ukurasa hitilafu kufanya bila kabla kila huu hiki hilo lakini au wapi lini wewe mimi sisi mpya mbili kwako kwangu hadi kuhusu "
            f"pamoja tu bado kutoka zaidi jambo kazi hatua saa nayo yangu kesho leo ijumaa au jua watu jua hakuna na ya wa kwa ni katika la za hii "
            f"kuwa cha kama lakini hiyo sasa yako baada yangu pia vya si zote sana kisha ili nita nina sawa {_SW_NOT}"
        ),
        "",
        (
            r"(?:^|, )(?:sasa |basi )?tuna(?!pendekeza|tumaini|shukuru|weza|jua|furahi)\w{3,}",
            (
                r"\b(?!nitafurahi|nitakuwa (?:hapa|tayari kukusaidia|na furaha)|nitaeleza|nitasubiri|nitakumbuka\b|nitaelezea|nitajibu|nitabaki)(?:nita|"
                r"tuta|naenda |ninaenda |nataka |ninataka |nakwenda )\w+"
            ),
            (
                rf"(?:{lead('mchana jioni baadaye ijumaa jumatatu asubuhi na sasa kisha kwanza sawa basi halafu kwa~hiyo hivyo mimi ndiyo pia vizuri sawasawa mara~moja haya asante moja~kwa~moja kesho leo')}){but(_SW_NOT)}(?:na|"
                rf"nina)(?!ta|me)\w{{4,}}(?! kwamba| kuwa\b)"
            ),
            r"\b(?:ngoja|acha|niruhusu|hebu|naomba) (?:ni|nika)(?!eleze|jue|seme)\w+|\b(?:niache|niruhusu) (?!nijue)\w+",
            (
                r"\b(?:(?:sasa|kwanza|bado) (?:nahitaji|ninahitaji|inabidi|yanipasa|lazima)|inabidi|lazima) (?:ni\w+|ku\w+)|\b(?:nahitaji|ninahitaji) (?:kwanza )?ku(?!jua|"
                r"toka|uliza)\w+"
            ),
            (
                r"^(?:(?:na|sasa|sawa|basi|kisha|haya),? )*(?:twende|tuende|tuendelee|tuanze|tuangalie|tuone|tupitie|tujaribu|tu\w+e\b|ni wakati wa|"
                r"wakati wa|hatua inayofuata|zamu ya|tayari kuanza)\b"
            ),
        ),
        (
            (
                r"\b(?:ukitaka|ukipenda|ukihitaji|ukiwa (?:na|tayari)|ukituma|uki(?:ni|sha)\w+|kama (?:unataka|ungependa|una|unahitaji|utahitaji)|iwapo|"
                r"endapo|niambie|nijulishe|natumai|natumaini|karibu|usisite|tafadhali (?!subiri)|siku zijazo|kuanzia sasa|nakuachia|kuchagua|naweza|"
                r"ninaweza|ningependa|chagua|nitumie|sita\w+|baada ya wewe|utakapo\w+|unapo\w+)\b"
            ),
        ),
        r"\b(?:tafadhali(?! subiri)|unaweza|ungependa|je, |nitumie|niambie|chagua|ipi|yapi|lipi)\b",
        (
            r"(?:(?:tafadhali )?(?:subiri|ngoja|kusubiri)(?: kidogo| dakika.*)?(?: tafadhali)?|dakika (?:moja|kidogo).*|sekunde.*|(?:hii )?(?:inaweza|"
            r"itachukua) .*|asante kwa (?:uvumilivu|subira).*)"
        ),
        r"^(?:(?:na|sasa),? )*(?:kinachofuata|inayofuata|hatua inayofuata): \S",
        when=r"\b(?:ikiwa|kama|mara tu|uki\w{4,}|iki\w{4,}|wata\w+po\w*|\w*takapo\w+|yaki\w{4,}|zikiisha|zikikamilika)\b",
    ),
)
