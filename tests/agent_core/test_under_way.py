"""Work that is said to go on by itself is a promise where no tool ran; what is said of the world is none."""

from __future__ import annotations

import pytest

from agent_core.rules.promises import PromiseSign, Reading, read_ending

IN_THE_BACKGROUND = {
    "en": "I've started the download in the background.",
    "de": "Ich habe den Download im Hintergrund gestartet.",
    "fr": "J'ai lancé le téléchargement en arrière-plan.",
    "es": "He iniciado la descarga en segundo plano.",
    "pt": "Iniciei o download em segundo plano.",
    "it": "Ho avviato il download in background.",
    "nl": "Ik heb de download op de achtergrond gestart.",
    "pl": "Uruchomiłem pobieranie w tle.",
    "ru": "Я запустил загрузку в фоновом режиме.",
    "uk": "Я запустив завантаження у фоновому режимі.",
    "bg": "Изтеглянето е започнато във фонов режим.",
    "sv": "Jag har startat nedladdningen i bakgrunden.",
    "da": "Jeg har startet downloadet i baggrunden.",
    "no": "Jeg har startet nedlastingen i bakgrunnen.",
    "fi": "Käynnistin latauksen taustalla.",
    "cs": "Spustil jsem stahování na pozadí.",
    "sk": "Spustil som sťahovanie na pozadí.",
    "hu": "Elindítottam a letöltést a háttérben.",
    "ro": "Am pornit descărcarea în fundal.",
    "el": "Ξεκίνησα τη λήψη στο παρασκήνιο.",
    "tr": "İndirmeyi arka planda başlattım.",
    "ar": "لقد بدأت التنزيل في الخلفية.",
    "he": "התחלתי את ההורדה ברקע.",
    "fa": "دانلود را در پس‌زمینه شروع کردم.",
    "hi": "मैंने पृष्ठभूमि में डाउनलोड शुरू कर दिया है।",
    "bn": "আমি ব্যাকগ্রাউন্ডে ডাউনলোড শুরু করেছি।",
    "id": "Saya sudah memulai unduhan di latar belakang.",
    "vi": "Tôi đã bắt đầu tải xuống chạy ngầm.",
    "th": "ฉันเริ่มดาวน์โหลดในเบื้องหลังแล้ว",
    "ja": "バックグラウンドでダウンロードを開始しました。",
    "ko": "백그라운드에서 다운로드를 시작했습니다.",
    "zh": "我已在后台开始下载。",
    "zh-Hant": "我已在後台開始下載。",
    "sw": "Nimeanza kupakua chinichini.",
}


@pytest.mark.parametrize("text", IN_THE_BACKGROUND.values(), ids=IN_THE_BACKGROUND)
def test_work_in_the_background_is_a_promise_in_every_language(text: str) -> None:
    found = read_ending(text)
    assert found.reading is Reading.PROMISE
    if found.sign is PromiseSign.UNDER_WAY:
        assert read_ending(text, ["run_command"]).reading is Reading.UNCLEAR, "a tool ran, so it may be so"


@pytest.mark.parametrize(
    "text",
    [
        "The garbage collector runs in the background.",
        "Systemd starts the job in the background when you log in.",
        "The report has been written to report.md.",
        "The file is being used by another process.",
        "Your order will be ready in 40 minutes, says the shop.",
        "A queue is a list from which tasks are taken in order.",
        "The download was started in 1999.",
        "It said “Processing your request...” and then it crashed.",
        "Le rapport est en cours de rédaction par l'équipe.",
        "Die Datei wird im Hintergrund gespeichert, wenn du Strg+S drückst.",
        "Приложение работает в фоновом режиме.",
        "这个程序在后台运行。",
    ],
)
def test_what_is_said_of_the_world_is_none(text: str) -> None:
    assert read_ending(text).reading is Reading.ANSWER


def test_a_long_reply_that_speaks_of_such_work_is_an_answer() -> None:
    assert read_ending("This is how it works. " * 20 + "Your request is being processed.").reading is Reading.ANSWER


def test_what_somebody_says_in_a_story_is_no_promise() -> None:
    assert (
        read_ending('The knight rode off. "Now I will slay the dragon!" he cried, and was gone.').reading
        is Reading.ANSWER
    )
