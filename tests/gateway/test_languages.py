"""In which language somebody is spoken to: the person, the operator, the platform, the letters, in this order."""

from __future__ import annotations

import pytest

from adapters.contract.base import FromApi, FromChat, SessionKey
from adapters.contract.chat import ChatAddress, ChatKind, ChatOrigin, ChatPerson
from agent_core.messages import InputMessage
from gateway.queues.languages import LanguageRules, language_for
from gateway.queues.prefs import Prefs

RUSSIAN = "Это вы написали?"


def said(text: str, language: str = "") -> FromChat:
    origin = ChatOrigin(ChatAddress("telegram", "1", "7"), ChatKind.PRIVATE, ChatPerson("2", "Ada", language=language))
    return FromChat(
        account="telegram/1", platform_key="k", session=SessionKey("telegram", "1", "7"), input=(InputMessage(text),),
        surface="telegram", memory_scope="s", chat=origin,
    )  # fmt: skip


def asked(text: str, language: str, surface: str) -> FromApi:
    return FromApi(
        account=surface, platform_key="k", session=SessionKey(surface, "a", "b"), input=(InputMessage(text),),
        surface=surface, memory_scope="s", language=language,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("chosen", "chat", "account", "everywhere", "platform", "text", "language"),
    [
        ("fr", "de", "es", "pt", "ja", RUSSIAN, "fr"),
        ("", "de", "es", "pt", "ja", RUSSIAN, "de"),
        ("", "", "es", "pt", "ja", RUSSIAN, "es"),
        ("", "", "", "pt", "ja", RUSSIAN, "pt"),
        ("", "", "", "", "ja", RUSSIAN, "ja"),
        ("", "", "", "", "tlh", RUSSIAN, "ru"),
        ("", "", "", "", "", RUSSIAN, "ru"),
        ("", "", "", "", "en-GB", RUSSIAN, ""),
        ("en", "de", "", "", "", RUSSIAN, ""),
        ("", "", "", "", "", "Hello", ""),
    ],
)
def test_the_first_who_names_a_language_decides(
    chosen: str, chat: str, account: str, everywhere: str, platform: str, text: str, language: str
) -> None:
    rules = LanguageRules(
        everywhere, {"telegram": account} if account else {}, {("telegram", "7"): chat} if chat else {}
    )
    assert language_for(said(text, platform), Prefs(language=chosen), rules) == language


def test_programs_are_not_guessed_and_pages_are() -> None:
    assert language_for(asked(RUSSIAN, "", "api"), Prefs(), LanguageRules()) == ""
    assert language_for(asked(RUSSIAN, "de", "api"), Prefs(), LanguageRules()) == "de"
    assert language_for(asked(RUSSIAN, "", "web"), Prefs(), LanguageRules()) == "ru"


def test_what_a_conversation_chose_is_stored_and_read() -> None:
    assert Prefs.decode(Prefs(language="de").encode()).language == "de"
    assert Prefs.decode('{"language": "tlh"}').language == ""
