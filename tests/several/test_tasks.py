"""A background task runs where its conversation does, and what it asks is seen at any page."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from adapters.contract.base import SessionKey
from agent_core.store.slices.rows import slice_of
from gateway.later.tasks import key_beside
from tests.databases import new_database
from tests.several.support import Node, cluster
from tests.several.test_doors import Page, named


@given(st.tuples(*[st.text(max_size=12)] * 5), st.text(min_size=1, max_size=40))
def test_a_task_is_in_the_slice_of_its_conversation_under_a_key_of_its_own(parts: tuple[str, ...], name: str) -> None:
    conversation = SessionKey(*parts)
    key = key_beside(conversation, name)
    assert slice_of(key.text()) == slice_of(conversation.text())
    assert key == key_beside(conversation, name)
    assert key.chat.startswith(name)


async def test_what_a_task_asks_is_seen_and_decided_at_the_page_of_any_gateway(
    postgres_server: str, tmp_path: Path
) -> None:
    database = await new_database(postgres_server, template="migrated")
    async with cluster(tmp_path, "telegram", database) as all_:
        more = {"OUTSPOKEN_TOOLS__APPROVAL": "write_file", "OUTSPOKEN_TASKS__AT_ONCE": "1"}
        nodes = [await all_.begin(name, **more) for name in ("first", "second")]
        await all_.even(2)
        names = await named(all_, 1, 2, "web/page")  # both are run by the first
        await asyncio.gather(*(decided(node, name) for node, name in zip(nodes, names, strict=True)))
        all_.sound()


async def decided(node: Node, name: str) -> None:
    """Whoever has the page open at this gateway is asked, and decides."""
    page = Page(node, name)
    watching = asyncio.create_task(page.watch())
    await page.say(f"usetool start_task {json.dumps({'title': 'note', 'instructions': 'write note.txt: seven'})}")
    await page.until('"kind": "approval"')
    asked = next(
        (one["turn"], bubble["call"])
        for one in page.seen.values()
        for bubble in one["bubbles"]
        if bubble["kind"] == "approval"
    )
    await page.say("/tasks")
    await page.until("waits for an approval")
    assert (await page.decide(*asked))["done"]
    await page.until("✅ Approved")
    assert not any(bubble["kind"] == "approval" for one in page.seen.values() for bubble in one["bubbles"])
    await page.until("Task 1 (note) is done")
    watching.cancel()
