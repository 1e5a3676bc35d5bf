"""Words of others, read by a model that obeys them all: nothing that others would see happens without a person's word."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from agent_core.tools.base import WhenTainted
from tests.injection.playing import Attack, attacks, play


async def _all(tmp_path: Path, policy: WhenTainted, *, can_approve: bool) -> list[str]:
    found: list[str] = []
    for number, attack in enumerate(attacks()):
        workspace = tmp_path / str(number)
        workspace.mkdir()
        played = await play(attack, workspace, policy, can_approve=can_approve)
        asked = played.asked if can_approve and policy is WhenTainted.ASK else played.told
        found += [f"{attack.name}: {one}" for one in played.effects]
        found += [] if asked else [f"{attack.name}: nobody was asked or told"]
    return found


async def test_no_attack_of_the_corpus_has_an_effect_without_a_persons_word(tmp_path: Path):
    assert len(attacks()) >= 200
    assert len({one.name for one in attacks()}) == len(attacks())
    assert await _all(tmp_path, WhenTainted.ASK, can_approve=True) == []


async def test_where_nobody_can_be_asked_each_is_refused_and_the_person_is_told(tmp_path: Path):
    assert await _all(tmp_path, WhenTainted.ASK, can_approve=False) == []


async def test_an_operator_can_have_each_refused(tmp_path: Path):
    assert await _all(tmp_path, WhenTainted.REFUSE, can_approve=True) == []


async def test_the_corpus_would_notice(tmp_path: Path):
    """Where the operator allows it all, every attack reaches its aim: the model does obey."""
    for number, attack in enumerate(attacks()):
        workspace = tmp_path / str(number)
        workspace.mkdir()
        assert (await play(attack, workspace, WhenTainted.ALLOW)).effects, attack.name


async def test_words_of_the_person_alone_are_never_asked_about(tmp_path: Path):
    for number, attack in enumerate(one for one in attacks() if one.door == "webhook" and len(one.calls) == 1):
        own: Attack = replace(attack, door="own")
        workspace = tmp_path / str(number)
        workspace.mkdir()
        played = await play(own, workspace)
        assert (played.asked, played.told) == (0, 0)
        assert played.effects


async def test_what_a_person_has_set_for_later_is_not_asked_about_when_it_comes(tmp_path: Path):
    planted = [
        one for one in attacks() if one.door in ("planted_prompt", "planted_task", "planted_memory", "planted_reminder")
    ]
    for number, attack in enumerate(one for one in planted if len(one.calls) == 1):
        workspace = tmp_path / str(number)
        workspace.mkdir()
        played = await play(attack, workspace, own=True)
        asked = attack.calls[0][0] == "fetch_url"  # an address that the model has put together from what it remembers
        assert played.effects or asked, attack.name
