"""Interactions with the stand-in for Discord, driven by the real library: commands, buttons, menus, forms, and their deadlines."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncGenerator, Awaitable, Callable

import pytest

from tests.fakes.discord import Callback, Code, DiscordFake, Interaction, MessageKind, Op
from tests.fakes.discord.library import Place, Watcher, discord, placed, serving

Answering = Callable[[discord.Interaction], Awaitable[object]]


class Commanding(Watcher):
    """A client with commands, which does with every interaction what the test says."""

    def __init__(self) -> None:
        super().__init__()
        self.tree = discord.app_commands.CommandTree(self)
        self.errors: list[discord.HTTPException] = []
        self.done = 0
        self.answering: Answering = self._nothing

        @self.tree.command(name="ask", description="Ask something")
        async def ask(interaction: discord.Interaction, question: str, whom: discord.User | None = None) -> None:
            await self.handle(interaction)

        @ask.autocomplete("question")
        async def propose(_: discord.Interaction, current: str) -> list[discord.app_commands.Choice[str]]:
            return [discord.app_commands.Choice(name=f"{current}?", value=current)]

        settings = discord.app_commands.Group(name="settings", description="Settings")

        @settings.command(name="language", description="The language")
        async def language(interaction: discord.Interaction, code: str) -> None:
            await interaction.response.send_message(f"language {code}")

        self.tree.add_command(settings)

    async def _nothing(self, _: discord.Interaction) -> None:
        await asyncio.sleep(0)

    async def handle(self, interaction: discord.Interaction) -> None:
        """What the test says; what the server refuses is remembered."""
        try:
            await self.answering(interaction)
        except discord.HTTPException as error:
            self.errors.append(error)
        self.done += 1

    async def on_interaction(self, interaction: discord.Interaction) -> None:
        """Answer what is no command."""
        if interaction.type in {discord.InteractionType.component, discord.InteractionType.modal_submit}:
            await self.handle(interaction)


@pytest.fixture
async def place() -> AsyncGenerator[Place[Commanding]]:
    bot = Commanding()
    async with serving(DiscordFake()) as fake, placed(fake, bot) as there:
        await bot.tree.sync()
        yield there


async def use(place: Place[Commanding], answering: Answering, act: Callable[[], Interaction]) -> Interaction:
    """Let somebody act, and wait until the bot has done what it does."""
    before = place.bot.done
    place.bot.answering = answering
    interaction = act()
    await place.fake.until(lambda: place.bot.done > before)
    return interaction


async def ask(place: Place[Commanding], answering: Answering) -> Interaction:
    """Ada uses /ask."""
    return await use(
        place, answering, lambda: place.fake.people.command(place.channel, place.ada, "ask", question="why?")
    )


# --- commands ---


async def test_commands_are_synced_and_counted(place: Place[Commanding]) -> None:
    commands = place.fake.world.commands
    assert [(one.guild_id, one.names) for one in commands.syncs] == [(None, ("ask", "settings"))]
    first = {one.name: one.id for one in await place.bot.tree.fetch_commands()}
    again = {one.name: one.id for one in await place.bot.tree.sync()}
    assert again == first
    assert commands.created == 2
    there = discord.Object(place.guild.id)
    place.bot.tree.copy_global_to(guild=there)
    await place.bot.tree.sync(guild=there)
    assert commands.syncs[-1].guild_id == place.guild.id
    assert commands.created == 4
    edited = await (await place.bot.tree.fetch_command(first["ask"])).edit(description="Another")
    assert edited.description == "Another"
    await edited.delete()
    with pytest.raises(discord.NotFound) as refused:
        await place.bot.tree.fetch_command(first["ask"])
    assert refused.value.code == Code.UNKNOWN_COMMAND


async def test_a_command_is_used_and_answered(place: Place[Commanding]) -> None:
    seen: list[discord.Interaction] = []

    async def answer(interaction: discord.Interaction) -> None:
        seen.append(interaction)
        response = await interaction.response.send_message("because")
        assert isinstance(response.resource, discord.InteractionMessage)

    act = place.fake.people.command
    used = await use(place, answer, lambda: act(place.channel, place.ada, "ask", question="why?", whom=place.bob))
    assert used.callback is Callback.MESSAGE
    shown = place.fake.shown(place.channel).answers[0]
    assert (shown.text, shown.kind, shown.ephemeral) == ("because", MessageKind.COMMAND, False)
    assert (seen[0].user.id, seen[0].namespace.question, seen[0].namespace.whom.id) == (
        place.ada.id,
        "why?",
        place.bob.id,
    )
    assert await place.fake.answered(used) is used
    with pytest.raises(AssertionError, match="needs question"):
        act(place.channel, place.ada, "ask")
    with pytest.raises(AssertionError, match="no command"):
        act(place.channel, place.ada, "tell")


async def test_a_subcommand_and_a_command_in_a_dm(place: Place[Commanding]) -> None:
    dm = place.fake.people.dm(place.ada)
    place.fake.people.command(dm, place.ada, "settings language", code="nl")
    await place.fake.until_shown(dm, lambda now: now.texts == ["language nl"])


async def test_proposals_while_somebody_types(place: Place[Commanding]) -> None:
    typed = place.fake.people.autocomplete(place.channel, place.ada, "ask", "question", "wh")
    await place.fake.answered(typed)
    assert typed.choices == [{"name": "wh?", "value": "wh"}]
    assert typed.callback is Callback.CHOICES


async def test_only_one_person_sees_what_is_ephemeral(place: Place[Commanding]) -> None:
    async def answer(interaction: discord.Interaction) -> None:
        notes = discord.File(io.BytesIO(b"x"), "notes.txt")
        await interaction.response.send_message("between us", ephemeral=True, file=notes)
        await interaction.edit_original_response(content="still between us")

    used = await ask(place, answer)
    assert place.fake.shown(place.channel).texts == []
    shown = place.fake.shown(place.channel, place.ada).answers[0]
    assert (shown.text, shown.ephemeral, shown.files[0].name) == ("still between us", True, "notes.txt")
    assert place.fake.shown(place.channel, place.bob).texts == []
    assert "MESSAGE_CREATE" not in place.bot.events
    assert used.original is not None
    with pytest.raises(discord.NotFound):
        await place.there.fetch_message(used.original.id)
    place.fake.people.dismiss(used.original)
    assert place.fake.shown(place.channel, place.ada).texts == []


async def test_thinking_then_an_answer_then_more(place: Place[Commanding]) -> None:
    shown: list[bool] = []

    async def answer(interaction: discord.Interaction) -> None:
        await interaction.response.defer(thinking=True)
        shown.append(place.fake.shown(place.channel).answers[0].thinking)
        await interaction.edit_original_response(content="found")
        more = await interaction.followup.send("and more", wait=True, file=discord.File(io.BytesIO(b"x"), "x.txt"))
        await more.edit(content="and much more")
        assert (await interaction.original_response()).content == "found"
        gone = await interaction.followup.send("gone", wait=True, ephemeral=True)
        await gone.delete()

    await ask(place, answer)
    answers = place.fake.shown(place.channel, place.ada).answers
    assert place.bot.errors == []
    assert shown == [True]
    assert [(one.text, one.thinking, one.edits) for one in answers] == [
        ("found", False, 0),
        ("and much more", False, 1),
    ]
    assert answers[1].files[0].name == "x.txt"
    assert answers[1].reply_to == answers[0].id


async def test_the_first_follow_up_takes_the_place_of_thinking(place: Place[Commanding]) -> None:
    async def answer(interaction: discord.Interaction) -> None:
        await interaction.response.defer(thinking=True, ephemeral=True)
        await interaction.followup.send("found")

    await ask(place, answer)
    shown = place.fake.shown(place.channel, place.ada).answers
    assert [(one.text, one.ephemeral, one.thinking) for one in shown] == [("found", True, False)]
    assert place.fake.shown(place.channel).texts == []


async def test_the_answer_is_deleted(place: Place[Commanding]) -> None:
    async def answer(interaction: discord.Interaction) -> None:
        await interaction.response.send_message("oops")
        await interaction.delete_original_response()
        await interaction.edit_original_response(content="too late")

    await ask(place, answer)
    assert [error.code for error in place.bot.errors] == [Code.UNKNOWN_MESSAGE]
    assert [one.text for one in place.fake.shown(place.channel).removed] == ["oops"]


# --- deadlines ---


async def test_after_three_seconds_nobody_waits_any_more(place: Place[Commanding]) -> None:
    async def answer(interaction: discord.Interaction) -> None:
        place.fake.advance(3.1)
        await interaction.response.send_message("late")

    used = await ask(place, answer)
    assert [(error.status, error.code) for error in place.bot.errors] == [(404, Code.UNKNOWN_INTERACTION)]
    assert not used.answered
    assert place.fake.failed(used)


async def test_a_second_answer_is_refused(place: Place[Commanding]) -> None:
    async def answer(interaction: discord.Interaction) -> None:
        await interaction.response.send_message("one")
        interaction.response._response_type = None
        await interaction.response.send_message("two")

    await ask(place, answer)
    assert [(error.status, error.code) for error in place.bot.errors] == [(400, Code.ALREADY_ACKNOWLEDGED)]
    assert place.fake.shown(place.channel).texts == ["one"]


async def test_after_a_quarter_of_an_hour_the_token_is_dead(place: Place[Commanding]) -> None:
    async def answer(interaction: discord.Interaction) -> None:
        await interaction.response.send_message("one")
        place.fake.advance(14 * 60)
        await interaction.edit_original_response(content="two")
        place.fake.advance(61)
        await interaction.edit_original_response(content="three")

    await ask(place, answer)
    assert [(error.status, error.code) for error in place.bot.errors] == [(401, Code.INVALID_WEBHOOK_TOKEN)]
    assert place.fake.shown(place.channel).texts == ["two"]
    # The message itself can still be edited as any other one.
    answer_id = place.fake.shown(place.channel).answers[0].id
    await place.there.get_partial_message(answer_id).edit(content="four")
    assert place.fake.shown(place.channel).texts == ["four"]


async def test_there_is_no_webhook_before_the_first_answer(place: Place[Commanding]) -> None:
    async def answer(interaction: discord.Interaction) -> None:
        await interaction.followup.send("too early")

    await ask(place, answer)
    assert [error.code for error in place.bot.errors] == [Code.UNKNOWN_WEBHOOK]


# --- components ---


def panel() -> discord.ui.View:
    """Buttons and a menu."""
    view = discord.ui.View(timeout=None)
    view.add_item(discord.ui.Button(label="Stop", custom_id="stop:1"))
    view.add_item(discord.ui.Button(label="Never", custom_id="never", disabled=True))
    view.add_item(discord.ui.Button(label="Help", url="https://example.org"))
    options = [discord.SelectOption(label=f"Option {n}", value=str(n)) for n in range(3)]
    view.add_item(discord.ui.Select(custom_id="menu", options=options, min_values=1, max_values=2))
    return view


async def test_a_button_is_pressed_and_the_message_changes(place: Place[Commanding]) -> None:
    sent = await place.there.send("running", view=panel())
    shown = place.fake.shown(place.channel).answers[0]
    assert (shown.buttons, shown.grey) == ((("Stop", "Never", "Help"),), ("Never",))
    assert shown.menus == (("Option 0", "Option 1", "Option 2"),)
    message = place.fake.message(place.channel, sent.id)

    async def stop(interaction: discord.Interaction) -> None:
        assert interaction.data is not None
        assert interaction.data.get("custom_id") == "stop:1"
        await interaction.response.edit_message(content="stopped", view=None)

    pressed = await use(place, stop, lambda: place.fake.people.press(message, place.bob, "Stop"))
    assert (pressed.callback, place.bot.errors) == (Callback.UPDATE, [])
    shown = place.fake.shown(place.channel).answers[0]
    assert (shown.text, shown.buttons, shown.edits) == ("stopped", (), 1)
    for wrong, words in (("Never", "no button"), ("Stop", "no button")):
        with pytest.raises(AssertionError, match=words):
            place.fake.people.press(message, place.bob, wrong)


async def test_a_press_is_taken_notice_of_only(place: Place[Commanding]) -> None:
    sent = await place.there.send("running", view=panel())
    message = place.fake.message(place.channel, sent.id)
    with pytest.raises(AssertionError, match="grey"):
        place.fake.people.press(message, place.bob, "Never")
    with pytest.raises(AssertionError, match="opens an address"):
        place.fake.people.press(message, place.bob, "Help")

    async def notice(interaction: discord.Interaction) -> None:
        await interaction.response.defer()
        await interaction.followup.send("noticed", ephemeral=True)

    pressed = await use(place, notice, lambda: place.fake.people.press_raw(message, place.bob, "forged"))
    assert pressed.callback is Callback.DEFERRED_UPDATE
    assert place.fake.shown(place.channel, place.bob).texts == ["running", "noticed"]
    assert place.fake.shown(place.channel).texts == ["running"]


async def test_a_choice_from_a_menu(place: Place[Commanding]) -> None:
    sent = await place.there.send("choose", view=panel())
    message = place.fake.message(place.channel, sent.id)
    values: list[object] = []

    async def chosen(interaction: discord.Interaction) -> None:
        assert interaction.data is not None
        values.append(interaction.data.get("values"))
        await interaction.response.defer()

    await use(place, chosen, lambda: place.fake.people.choose(message, place.ada, "Option 0", "Option 2"))
    assert values == [["0", "2"]]
    with pytest.raises(AssertionError, match="between 1 and 2"):
        place.fake.people.choose(message, place.ada)


async def test_a_form_is_shown_filled_in_and_answered(place: Place[Commanding]) -> None:
    sent = await place.there.send("?", view=panel())
    message = place.fake.message(place.channel, sent.id)
    got: list[str] = []

    class Form(discord.ui.Modal, title="Tell more"):
        why = discord.ui.TextInput["Form"](label="Why", custom_id="why")
        note = discord.ui.TextInput["Form"](label="Note", custom_id="note", required=False)

        async def on_submit(self, interaction: discord.Interaction) -> None:
            got.extend([self.why.value, self.note.value])
            await interaction.response.edit_message(content="thanks")

    async def show(interaction: discord.Interaction) -> None:
        if interaction.type is discord.InteractionType.component:
            await interaction.response.send_modal(Form())

    pressed = await use(place, show, lambda: place.fake.people.press(message, place.ada, "Stop"))
    assert pressed.callback is Callback.MODAL
    with pytest.raises(AssertionError, match="must be filled in"):
        place.fake.people.submit(pressed, {})
    place.fake.people.submit(pressed, {"Why": "because"})
    await place.fake.until_shown(place.channel, lambda now: now.texts == ["thanks"])
    assert got == ["because", ""]


async def test_components_have_limits(place: Place[Commanding]) -> None:
    view = discord.ui.View(timeout=None)
    view.add_item(discord.ui.Button(label="x" * 81, custom_id="a"))
    view.add_item(discord.ui.Button(label="b", custom_id="a"))
    with pytest.raises(discord.HTTPException) as refused:
        await place.there.send("x", view=view)
    words = str(refused.value)
    assert refused.value.code == Code.INVALID_FORM
    assert "In components.0.components.0.label: Must be 80 or fewer in length." in words
    assert "In components.0.components.1.custom_id: Component custom id cannot be duplicated" in words


async def test_an_interaction_is_told_again_after_resuming(place: Place[Commanding]) -> None:
    place.fake.gateway.cut()
    await place.fake.until(lambda: not place.fake.connected)

    async def answer(interaction: discord.Interaction) -> None:
        await interaction.response.send_message("there you are")

    await ask(place, answer)
    assert place.fake.shown(place.channel).texts == ["there you are"]
    assert len(place.fake.gateway.of(Op.RESUME)) == 1
