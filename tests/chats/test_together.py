"""What befalls one platform does not touch the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chats.harness import answer, environment, texts
from tests.chats.together import Trouble, three
from tests.serving import served


@pytest.mark.parametrize("sick", ["discord", "slack", "telegram"])
async def test_the_others_are_answered_while_one_is_in_trouble(sick: str, tmp_path: Path) -> None:
    async with three(tmp_path) as world:
        env = environment(world.discord, **world.env())
        async with served(tmp_path, env):
            await world.ready()
            people = {name: h.person("Ada") for name, h in world.all.items()}
            places = {name: h.private(people[name]) for name, h in world.all.items()}
            for name, harness in world.all.items():
                harness.say(places[name], people[name], "say one")
                await answer(harness, places[name], "one")
            said = ["one"]
            for trouble in (Trouble.STORM, Trouble.CRASHING, Trouble.HANGING):
                again = await world.begin(sick, trouble)
                again()
                world.all[sick].say(places[sick], people[sick], f"say late {trouble}")
                for number in range(3):
                    said.append(f"{trouble} {number}")
                    for name, harness in world.all.items():
                        if name != sick:
                            again()
                            harness.say(places[name], people[name], f"say {trouble} {number}")
                            await answer(harness, places[name], said[-1])
                if trouble is Trouble.HANGING:
                    assert not [one for one in texts(world.all[sick], places[sick]) if str(trouble) in one]
                world.end(sick)
            for name, harness in world.all.items():
                if name != sick:
                    assert texts(harness, places[name]) == said
            for trouble in Trouble:
                await answer(world.all[sick], places[sick], f"late {trouble}", 60)
