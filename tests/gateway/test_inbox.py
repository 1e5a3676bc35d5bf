"""What is stored of a message: the same bytes in every version, and what an older one stored is read."""

from __future__ import annotations

import orjson
import pytest

from adapters.contract.base import FromApi, FromChat, Inbound, SessionKey
from adapters.contract.chat import ChatAddress, ChatKind, ChatOrigin, ChatPerson, attachment
from agent_core.jsonvalue import Json
from agent_core.messages import InputMessage
from gateway.queues.inbox import UnreadableMessage, chat_of, decode, encode

WORDS = (InputMessage("hello"),)
ORIGIN = ChatOrigin(
    ChatAddress("telegram", "99", "7"), ChatKind.PRIVATE, ChatPerson("5", "Ada"), message="1",
    attachments=(attachment("ref", "a.png", "image/png", 12),),
)  # fmt: skip
STORED: tuple[tuple[Inbound, bytes], ...] = (
    (
        FromChat(
            account="telegram/99", platform_key="7:1", session=SessionKey("telegram", "99", "7"), input=WORDS,
            surface="telegram", memory_scope="telegram/99/7//", can_approve=True, chat=ORIGIN, digest="d",
        ),
        (b'{"account":"telegram/99","platform_key":"7:1","session":{"platform":"telegram","account":"99","chat":"7"},'
        b'"input":[{"content":"hello"}],"surface":"telegram","memory_scope":"telegram/99/7//","can_approve":true,'
        b'"chat":{"address":{"platform":"telegram","account":"99","chat":"7"},"kind":"private",'
        b'"person":{"id":"5","name":"Ada"},"message":"1",'
        b'"attachments":[{"kind":"image","ref":"ref","name":"a.png","mime":"image/png","size":12}]},"digest":"d"}'),
    ),
    (
        FromApi(
            account="api", platform_key="k", session=SessionKey("api", "once", "x1"), input=WORDS, surface="api",
            memory_scope="api/ada", own_history=({"role": "user", "content": "before"},), request={"temperature": 0.5},
            client_tools=({"type": "function", "function": {"name": "f"}},), model="m", client_output_limit=True,
            digest="d", trace="00-1",
        ),
        (b'{"account":"api","platform_key":"k","session":{"platform":"api","account":"once","chat":"x1"},'
        b'"input":[{"content":"hello"}],"surface":"api","memory_scope":"api/ada",'
        b'"own_history":[{"role":"user","content":"before"}],"request":{"temperature":0.5},'
        b'"client_tools":[{"type":"function","function":{"name":"f"}}],"model":"m","client_output_limit":true,'
        b'"digest":"d","trace":"00-1"}'),
    ),
    (
        FromApi(
            account="web", platform_key="p:1", session=SessionKey("web", "page", "p"), input=WORDS, surface="web",
            memory_scope="web", can_approve=True, browser="b1234567", digest="hello",
        ),
        (b'{"account":"web","platform_key":"p:1","session":{"platform":"web","account":"page","chat":"p"},'
        b'"input":[{"content":"hello"}],"surface":"web","memory_scope":"web","can_approve":true,"browser":"b1234567",'
        b'"digest":"hello"}'),
    ),
)  # fmt: skip


@pytest.mark.parametrize(("inbound", "body"), STORED)
def test_a_message_is_stored_and_read_as_ever(inbound: Inbound, body: bytes) -> None:
    assert encode(inbound) == body
    assert decode(body) == inbound
    assert chat_of(body) == (inbound.chat if isinstance(inbound, FromChat) else None)


@pytest.mark.parametrize(("inbound", "body"), STORED)
def test_fields_that_a_version_wrote_out_although_they_are_empty_say_nothing(inbound: Inbound, body: bytes) -> None:
    empty: dict[str, Json] = {
        "own_history": None,
        "request": {},
        "client_tools": [],
        "model": "",
        "chat": None,
        "browser": "",
    }
    assert decode(orjson.dumps(empty | orjson.loads(body))) == inbound


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"null", b"{}", b'{"chat":{}}', STORED[0][1].replace(b"private", b"x")]
)
def test_what_cannot_be_read_is_nobody_elses_message(body: bytes) -> None:
    with pytest.raises(UnreadableMessage):
        decode(body)
