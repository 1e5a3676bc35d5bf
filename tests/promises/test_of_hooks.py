"""docs/webhooks.md, In: a signed call begins a turn."""

from __future__ import annotations

import base64
import hashlib
import hmac
import time
import uuid

import httpx

from tests.promises.conftest import HOOK_SECRET
from tests.promises.user import User, code, until

BODY = b'{"build": {"number": 7}}'
SIGNED: tuple[str, ...] = ("webhook-id", "webhook-timestamp", "webhook-signature")


def called(
    user: User,
    body: bytes = BODY,
    name: str = "",
    *,
    late: int = 0,
    secret: bytes = HOOK_SECRET,
    without: str = "",
    hook: str = "builds",
) -> httpx.Response:
    name, now = name or f"msg_{uuid.uuid4().hex}", str(int(time.time()) - late)
    made = base64.b64encode(hmac.new(secret, f"{name}.{now}.".encode() + body, hashlib.sha256).digest()).decode()
    heads: dict[str, str] = dict(zip(SIGNED, (name, now, f"v1,{made}"), strict=True))
    heads.pop(without, "")
    return user.http.post(f"/hooks/{hook}", content=body, headers=heads)


def test_what_is_wrong_with_a_call_is_told_by_its_status_and_counts_as_none(user: User):
    for missing in SIGNED:
        assert code(called(user, without=missing)) == (400, "not_signed")
    assert code(called(user, secret=b"another secret of the same size!")) == (401, "wrong_signature")
    assert called(user, late=310).status_code == 401
    assert called(user, late=-310).status_code == 401
    assert code(called(user, b"{")) == (400, "invalid_json")
    assert called(user, hook="nobody").status_code == 404
    assert called(user, b'"' + b"x" * 1_999 + b'"').status_code == 413

    first = called(user, name="msg_first")
    assert first.status_code == 202
    again = called(user, name="msg_first")
    assert (again.status_code, again.json()) == (202, first.json())
    assert called(user, b"{}", name="msg_first").status_code == 422
    assert called(user, b'"' + b"x" * 1_998 + b'"').status_code == 202
    assert called(user, late=280).status_code == 202
    until(lambda: called(user).status_code == 429, "its rate is no limit")
    assert called(user).headers["Retry-After"].isdigit()
    assert called(user, name="msg_first").json() == first.json()


def test_a_hooks_session_is_read_without_a_key_and_by_no_key_with_an_owner(user: User):
    assert called(user, name="msg_first").status_code in {202, 429}
    path = "/v1/conversations/builds/items"
    until(lambda: "A build has ended" in user.http.get("/v1/outspoken/sessions/builds/export").text, "it is not asked")
    key = user.key("gus", "--owner", "gus")
    assert user.http.get(path).status_code == 200
    assert user.http.get(path, headers={"Authorization": f"Bearer {key}"}).status_code == 404
