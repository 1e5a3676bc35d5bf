"""A turn goes on at a gateway with another directory for files: its agent reads so in its folder, and the person is told who may miss one."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from adapters.contract.base import FromApi, FromChat, Inbound, SessionKey
from adapters.contract.chat import ChatAddress, ChatKind, ChatOrigin, ChatPerson, attachment
from agent_core.messages import InputMessage
from agent_core.store.sessions.takeups import LeftTurn
from agent_core.store.store import StorageUnavailable
from agent_core.tools.files.workspace import ELSEWHERE
from gateway.limits.whose import workspace_of
from gateway.queues import inbox
from gateway.several.files import FilesElsewhere, _note

HERE, GONE = 1, 2
WORDS = "I go on with this on another machine, and files that I had there are not here."


def chat(name: str, *, file: bool = False) -> FromChat:
    sent = (attachment("ref", "a.png", "image/png", 12),) if file else ()
    origin = ChatOrigin(ChatAddress("telegram", "1", name), ChatKind.PRIVATE, ChatPerson("7", "A"), attachments=sent)
    return FromChat(
        account="telegram/1", platform_key=name, session=SessionKey("telegram", "1", name), input=(InputMessage("go"),),
        surface="telegram", memory_scope=f"telegram/1/{name}", chat=origin,
    )  # fmt: skip


PAGE = FromApi(
    account="web", platform_key="k", session=SessionKey("web", "page", "s"), input=(InputMessage("go"),), surface="web",
    memory_scope="web/ada",
)  # fmt: skip


class Gateway:
    """One that takes turns over from `GONE`, which had the directory `there`, as had this one `here`."""

    def __init__(self, asked: dict[str, tuple[Inbound, ...]], calls: tuple[str, ...], there: str) -> None:
        self.asked, self.calls_, self.there, self.node = asked, calls, there, HERE
        self.inbox = self.turns = self.slices = self
        self.told_: list[tuple[str, str, str]] = []
        self.failing: dict[str, Exception] = {}

    async def told(self, nodes: set[int]) -> dict[int, str]:
        return dict.fromkeys(nodes, f'{{"directory": "{self.there}"}}' if self.there else "")

    async def inputs(self, turn: str) -> list[Any]:
        if turn in self.failing:
            raise self.failing[turn]
        return [SimpleNamespace(body=inbox.encode(one)) for one in self.asked[turn]]

    async def calls(self, turn: str) -> list[str]:
        return [one for one in self.calls_ if one == turn]

    async def post(self, address: ChatAddress, key: str, words: str) -> None:
        self.told_.append((address.chat, key, words))

    async def say(self, root: Path, number: str = "here", *, owner: int | None = GONE) -> None:
        lefts = [LeftTurn(turn, "s", "key", owner, 0, 0) for turn in self.asked]
        await FilesElsewhere(root, number, cast("Any", self), cast("Any", self)).say(lefts)


def noted(root: Path, one: Inbound) -> bool:
    return (workspace_of(one, root) / ELSEWHERE).exists()


async def test_whose_turn_has_a_file_or_may_have_made_one_is_told_once_and_each_folder_says_so(tmp_path: Path) -> None:
    asked: dict[str, tuple[Inbound, ...]] = {
        "called": (chat("called"),), "plain": (chat("plain"),), "second": (chat("second"), chat("second", file=True)),
        "sent": (chat("sent", file=True),), "page": (PAGE,), "nothing": (),
    }  # fmt: skip
    gateway = Gateway(asked, ("called", "page"), "there")
    await gateway.say(tmp_path)
    assert gateway.told_ == [(name, f"elsewhere:{name}", WORDS) for name in ("called", "second", "sent")]
    assert all(noted(tmp_path, one) for some in asked.values() for one in some)


@pytest.mark.parametrize(
    ("there", "number", "owner"),
    [("here", "here", GONE), ("", "here", GONE), ("there", "", GONE), ("there", "here", HERE), ("there", "here", None)],
)
async def test_where_the_directory_is_the_same_or_nobody_knows_nothing_is_said(
    tmp_path: Path, there: str, number: str, owner: int | None
) -> None:
    gateway = Gateway({"sent": (chat("sent", file=True),)}, (), there)
    await gateway.say(tmp_path, number, owner=owner)
    assert not gateway.told_
    assert not noted(tmp_path, chat("sent"))


async def test_one_of_which_it_cannot_be_said_keeps_it_from_no_other_and_without_a_storage_nothing_goes_on(
    tmp_path: Path,
) -> None:
    gateway = Gateway({name: (chat(name, file=True),) for name in ("a", "b")}, (), "there")
    gateway.failing["a"] = ValueError("a mistake of ours")
    await gateway.say(tmp_path)
    assert [name for name, _, _ in gateway.told_] == ["b"]
    gateway.failing["a"] = StorageUnavailable("away")
    with pytest.raises(StorageUnavailable):
        await gateway.say(tmp_path)


def test_what_a_link_in_its_place_leads_to_is_not_written_over(tmp_path: Path) -> None:
    """A command of the model's may have made it, and the gateway can write where the command cannot."""
    precious = tmp_path / "precious"
    precious.write_text("kept")
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / ELSEWHERE).symlink_to(precious)
    for _ in range(2):
        _note(tmp_path / "workspace", 7)
    assert precious.read_text() == "kept"
    assert "gateway 7" in (tmp_path / "workspace" / ELSEWHERE).read_text()
