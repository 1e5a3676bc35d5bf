"""``outspoken approvals``: whoever runs the gateway sees what waits anywhere and decides about it, by the rule of who may; each decision is in the audit."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path

from tests.chats.harness import answer, environment, process
from tests.chats.telegram_harness import TelegramHarness, telegram_harness
from tests.gateway.test_process import environment as shell
from tests.gateway.test_process import outspoken
from tests.ports import free_port

ASKS = {"OUTSPOKEN_TOOLS__APPROVAL": "write_file"}


class Shell:
    """The command, in a terminal of the machine on which the gateway runs."""

    def __init__(self, harness: TelegramHarness, **more: str) -> None:
        self.port = free_port()
        self.asks = {**more, "OUTSPOKEN_SERVER__PORT": str(self.port)}
        self.env = shell(harness.folder, self.port, **environment(harness, **more))

    async def run(self, *words: str) -> tuple[int, str, str]:
        done = await asyncio.to_thread(outspoken, self.env, "approvals", *words)
        return done.returncode, done.stdout, done.stderr


def audit(folder: Path) -> list[tuple[str, str]]:
    with closing(sqlite3.connect(f"file:{folder / 'outspoken.db'}?mode=ro", uri=True, timeout=20)) as found:
        return found.execute("SELECT act, who FROM audit ORDER BY at").fetchall()


async def test_what_waits_in_a_chat_is_listed_shown_approved_and_denied_in_the_shell(tmp_path: Path) -> None:
    async with telegram_harness(tmp_path) as telegram:
        ada, here = telegram.person("Ada"), Shell(telegram, **ASKS)
        chat = telegram.private(ada)
        status, out, err = await here.run("list")
        assert (status, out) == (1, "")
        assert "No gateway of this configuration runs" in err
        async with process(telegram, **here.asks):
            assert await here.run("list") == (0, "Nothing waits for anybody's word.\n", "")
            telegram.say(chat, ada, "write a.txt: milk")
            await answer(telegram, chat, "May I write")
            status, out, _ = await here.run("list")
            assert status == 0
            assert 'May I write "a.txt" (1 line)? (write_file)' in out
            assert "Ada (telegram/" in out
            assert "left to decide" in out
            (one,) = json.loads((await here.run("list", "--json"))[1])["approvals"]
            assert one["place"].startswith("telegram/")
            assert one["diff"] == "@@ -0,0 +1,1 @@\n+milk\n\\ No newline at end of file"
            mark = one["id"].rpartition("_")[2]
            _, out, _ = await here.run("show", mark)
            assert 'content: "milk"' in out
            assert "+milk" in out
            assert await here.run("show", "nothing-of-that-name") == (
                1, "", "Nothing that waits is called nothing-of-that-name. outspoken approvals list shows what does.\n",
            )  # fmt: skip
            assert await here.run("approve", mark) == (0, "Approved: it runs now.\n", "")
            await answer(telegram, chat, "✅ Approved: write")
            await answer(telegram, chat, "Done: Wrote")
            # It was, and is no second decision
            assert (await here.run("approve", one["id"]))[:2] == (
                0,
                "Approved: it runs now.\n",
            )
            status, _, err = await here.run("deny", one["id"])
            assert (status, "It was approved before" in err) == (1, True)
            telegram.say(chat, ada, "write b.txt: milk")
            await answer(telegram, chat, 'May I write "b.txt"')
            (one,) = json.loads((await here.run("list", "--json"))[1])["approvals"]
            assert await here.run("deny", one["id"][-12:]) == (0, "Denied: it does not run.\n", "")
            await answer(telegram, chat, "⛔ Not approved")
            telegram.command(chat, ada, "why", "")
            await answer(telegram, chat, "approval denied")
        assert audit(tmp_path) == [("approve", "operator"), ("deny", "operator")]
        assert [path.name for path in tmp_path.rglob("[ab].txt")] == ["a.txt"]


async def test_where_no_admin_may_decide_the_shell_may_not_either_and_says_who_may(tmp_path: Path) -> None:
    asks = {**ASKS, "OUTSPOKEN_TOOLS__APPROVERS": "asker"}
    async with telegram_harness(tmp_path) as telegram:
        ada, here = telegram.person("Ada"), Shell(telegram, **asks)
        chat = telegram.private(ada)
        async with process(telegram, **here.asks):
            telegram.say(chat, ada, "write a.txt: milk")
            asked = await answer(telegram, chat, "May I write")
            (one,) = json.loads((await here.run("list", "--json"))[1])["approvals"]
            assert "Only Ada may decide it." in (await here.run("show", one["id"]))[1]
            status, out, err = await here.run("approve", one["id"])
            assert (status, out) == (1, "")
            assert "Only Ada may decide that" in err
            telegram.press(chat, ada, asked.id, "✅ Approve")
            await answer(telegram, chat, "Done: Wrote")
        assert audit(tmp_path) == []
