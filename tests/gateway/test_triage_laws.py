"""The laws of grouping, and log lines as they may come: in any order, in any number of files, plain or packed, wrapped by others."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.contract.chat import Cause
from adapters.contract.pacing import worth_saying
from adapters.contract.settings import Section
from agent_core.failures.exits import EXITS
from gateway.config.sections import schema
from gateway.observe.logcatalogue import catalogue
from gateway.observe.logging import as_json as log_line
from gateway.operate.triage.grouping import EXAMPLES, Group, Groups, Issue, SeenFailure, add, grouped, ranked, tried
from gateway.operate.triage.issues import alike, cause_of, delivery_action, delivery_issue, event_issue, turn_issue
from gateway.operate.triage.lines import LogReading, sift, stamp_of
from gateway.operate.triage.report import WIDTH, Report, as_json, text
from tests.printed.logs import lines_written

NOW = 1_800_000_000_000
WRITTEN = lines_written()
ISSUES = [Issue(f"k{n}", f"title {n}", "do this", everyone=n == 0) for n in range(4)]

failures = st.builds(
    SeenFailure,
    issue=st.sampled_from(ISSUES),
    at=st.integers(NOW - 10**8, NOW),
    hurt=st.booleans(),
    conversation=st.sampled_from(["", "s1", "s2", "s3"]),
    turn=st.sampled_from(["", *(f"t{n}" for n in range(9))]),
    surface=st.sampled_from(["", "telegram", "slack"]),
    remedy=st.sampled_from(["", "retry", "next_route"]),
    outcome=st.sampled_from(["helped", "not_helped", "not_known"]),
    words=st.sampled_from(["", "a", "b"]),
    evidence=st.booleans(),
)


def shown(groups: Groups) -> bytes:
    """All that anybody sees of groups."""
    return as_json(Report(groups, "x", NOW, 0), 100) + text(Report(groups, "x", NOW, 0), 100).encode()


@given(st.lists(failures, max_size=60), st.randoms(use_true_random=False))
def test_the_order_of_failures_does_not_matter(found: list[SeenFailure], chance: object) -> None:
    other = sorted(found, key=lambda _: chance.random())  # type: ignore[attr-defined]
    assert shown(grouped(found)) == shown(grouped(other))


@given(st.lists(failures, max_size=60))
def test_no_failure_is_lost_and_none_is_counted_twice(found: list[SeenFailure]) -> None:
    groups = grouped(found)
    assert sum(group.count for group in groups.values()) == sum(not seen.evidence for seen in found)
    for group in groups.values():
        mine = [seen for seen in found if seen.issue is group.issue]
        assert (group.first_at, group.last_at) == (min(s.at for s in mine), max(s.at for s in mine))
        assert sum(one.times for one in tried(group)) == sum(bool(seen.remedy) for seen in mine)
        assert all(one.helped <= one.known <= one.times for one in tried(group))
        latest = {seen.turn: max(s.at for s in mine if s.turn == seen.turn) for seen in mine if seen.turn}
        assert list(group.examples) == sorted(latest, key=lambda turn: (-latest[turn], -int(turn[1:])))[:EXAMPLES]


@given(st.lists(failures, max_size=60))
def test_the_most_harmful_stands_first(found: list[SeenFailure]) -> None:
    order = ranked(grouped(found), NOW)
    assert all(one.harm(NOW) >= other.harm(NOW) for one, other in pairwise(order))


@given(st.integers(1, 50), st.integers(0, 10**9), st.integers(1, 50), st.integers(0, 10**9))
def test_harm_grows_with_the_conversations_and_fades_with_time(more: int, age: int, fewer: int, older: int) -> None:
    def of(conversations: int, age: int) -> Group:
        made = (SeenFailure(ISSUES[1], NOW - age, conversation=f"s{n}") for n in range(conversations))
        return grouped(made)["k1"]

    assert of(more + fewer, age).harm(NOW) > of(more, age).harm(NOW)
    assert of(more, age).harm(NOW) >= of(more, age + older).harm(NOW)


def test_what_a_remedy_cured_stands_behind_what_hurt() -> None:
    cured = [SeenFailure(ISSUES[1], NOW, False, f"s{n}", remedy="retry", outcome="helped") for n in range(5)]
    hurt = [SeenFailure(ISSUES[2], NOW - 3_600_000, True, "s1")]
    assert [one.issue.key for one in ranked(grouped(cured + hurt), NOW)] == ["k2", "k1"]


@given(st.lists(failures, min_size=1, max_size=40))
def test_the_report_fits_a_terminal(found: list[SeenFailure]) -> None:
    odd = SeenFailure(Issue("x", "a " * 200 + "\x1b[31m\u202e", "see " * 80), NOW, words="\x1b]0;x\x07" + "word " * 500)
    said = text(Report(grouped([*found, odd]), "y", NOW, 5, ("note " * 60,)), 3)
    assert max(map(len, said.split("\n"))) <= WIDTH
    assert "\x1b" not in said
    assert "\u202e" not in said


def test_the_report_says_of_each_group_what_was_said_last() -> None:
    found = [SeenFailure(ISSUES[1], NOW + at, words=words) for at, words in ((1, "It burns."), (0, "It smells."))]
    said = text(Report(grouped(found), "y", NOW, 5, ()), 3)
    assert "    said: It burns.\n" in said
    assert "It smells." not in said


# ---------------------------------------------------------------------- lines


def line(name: str, level: str = "info", at: int = NOW, **facts: object) -> bytes:
    """A line as the gateway writes it."""
    return log_line(None, level, {"timestamp": stamp_of(at), "level": level, "event": name, **facts})


def ended(turn: int, exit_code: str = "answered", troubles: tuple[str, ...] = (), **more: object) -> bytes:
    level = "info" if exit_code in ("answered", "stopped") else "warning"
    facts = {"session": f"s-{turn // 10 % 150}", "surface": "telegram", "exit": exit_code, "troubles": list(troubles)}
    return line("turn.ended", level, NOW + turn, turn=f"t-{turn}", fingerprint="", **{**facts, **more})


def sifted(*lines: bytes, since: str = "") -> LogReading:
    found = LogReading()
    sift(found, lines, since)
    return found


def staged(failed: int = 1_000) -> list[bytes]:
    """So many failures of ten causes, among turns that went well."""
    out: list[bytes] = []
    for n in range(failed):
        size, turn = "SML"[n % 3], n * 10
        match n % 10:
            case 0 | 1:
                stall = f"broken_in_tool_call|api.example.com|m1|write_file|{size}"
                out.append(
                    ended(turn, "broken_in_tool_call", (f"{stall} advise_smaller not_helped", f"{stall} - ended"))
                )
            case 2:
                out.append(ended(turn, "answered", ("rate_limited|api.example.com|m1|-|- retry helped",)))
            case 3:
                out.append(ended(turn, "not_authorised", ("not_authorised|two.example.com|m2|-|- - ended",)))
            case 4:
                out.append(
                    line(
                        "delivery.failed",
                        "error",
                        NOW + turn,
                        chat=f"telegram/bot/{n % 300}/",
                        origin=f"t-{turn}",
                        part=f"p{n}",
                        cause="blocked",
                        words=f"blocked by {n}",
                    )
                )
            case 5:
                out.append(
                    line("adapter.down", "warning", NOW + turn, adapter="discord/main", words=f"try {n}", times=n)
                )
                out.append(line("adapter.deaf", "warning", NOW + turn, adapter="discord/main", words=f"{n} s"))
            case 6:
                out.append(
                    line(
                        "storage.unavailable",
                        "warning",
                        NOW + turn,
                        turn=f"t-{turn}",
                        away_seconds=n,
                        error="disk full",
                    )
                )
                out.append(
                    line("surface.storage_unavailable", "warning", NOW + turn, chat=f"slack/w/{n}/", error="disk full")
                )
            case 7:
                out.append(
                    line(
                        "turn.driver_failed",
                        "error",
                        NOW + turn,
                        turn=f"t-{turn}",
                        work="loop",
                        reference=f"err-{n}",
                        exception="Traceback\n  x\nKeyError: 'a'",
                    )
                )
                out.append(ended(turn, "internal_error"))
            case 8:
                out.append(ended(turn, "going_in_circles", ("going_in_circles|api.example.com|m1|search|- - ended",)))
            case _:
                out.append(line("chat.refused", "info", NOW + turn, account="slack/w", reason="queue_full", inbox=n))
        out += [ended(turn + extra) for extra in range(1, 5)]
    return out  # fmt: skip


def test_a_thousand_raw_failures_make_at_most_ten_groups() -> None:
    found = sifted(*staged())
    assert sum(group.times for group in found.groups.values()) >= 1_000
    assert len(found.groups) <= 10
    assert found.unread == 0
    titles = [group.issue.title for group in ranked(found.groups, found.newest_ms)]
    assert titles[0] == "replies break off inside a tool call – m1 at api.example.com, calls of write_file"
    by_title = {group.issue.title: group for group in found.groups.values()}
    assert by_title["a mistake in the gateway ended turns"].count == 100
    assert by_title["a mistake in the gateway ended turns"].words[1] == "KeyError: 'a'"
    assert tried(by_title["the provider's rate limit is hit – m1 at api.example.com"])[0].helped == 100
    assert by_title["not delivered on telegram: blocked"].conversations == 30
    assert not by_title["not delivered on telegram: blocked"].hurt, "they do not want it otherwise"
    assert by_title["connection lost: discord/main"].times == 200
    assert by_title["the storage did not answer"].surfaces["slack"] == 100


@given(st.permutations(range(30)), st.integers(0, 30))
def test_the_order_of_lines_and_how_they_are_cut_into_files_does_not_matter(order: list[int], cut: int) -> None:
    lines = staged(30)[:30]
    mixed = [lines[n] for n in order]
    found, whole = LogReading(), sifted(*lines)
    for file in (mixed[:cut], mixed[cut:]):
        sift(found, file)
    assert shown(found.groups) == shown(whole.groups)
    assert (found.lines, found.turns, found.newest) == (whole.lines, whole.turns, whole.newest)


RESHAPED: dict[str, Callable[[bytes], bytes]] = {
    "other white space": lambda one: orjson.dumps(orjson.loads(one), option=orjson.OPT_INDENT_2).replace(b"\n", b" "),
    "other order": lambda one: orjson.dumps(orjson.loads(one), option=orjson.OPT_SORT_KEYS),
    "syslog's head": lambda one: b"Nov 20 10:00:00 host outspoken[71]: " + one,
    "journald's JSON": lambda one: orjson.dumps({"PRIORITY": "6", "MESSAGE": one.decode()}),
    "a container's log": lambda one: orjson.dumps({"log": one.decode() + "\n", "stream": "stderr"}),
    "a carriage return": lambda one: one + b"\r\n",
}


@pytest.mark.parametrize("how", RESHAPED)
def test_lines_that_were_reshaped_on_their_way_tell_the_same(how: str) -> None:
    lines = staged(60)
    found, plain = sifted(*map(RESHAPED[how], lines)), sifted(*lines)
    assert shown(found.groups) == shown(plain.groups)
    assert (found.turns, found.newest, found.unread) == (plain.turns, plain.newest, 0)


def test_what_is_no_event_is_counted_and_passed_over() -> None:
    odd = [
        b"Traceback (most recent call last):",
        b"{",
        b"{}",
        b"[1]",
        b'{"timestamp":"x","event":"turn.ended"}',
        b"\xff{\xff",
    ]
    found = sifted(*odd, b"", b"  \n", ended(1, "provider_down"))
    assert (found.lines, found.unread, found.turns) == (7, 6, 1)
    assert len(found.groups) == 1


@given(st.lists(st.binary(max_size=80), max_size=20))
def test_no_line_can_stop_the_sifting(lines: list[bytes]) -> None:
    found = sifted(*lines, *(b'{"timestamp":"' + one for one in lines))
    assert found.newest_ms >= 0


def test_only_what_came_since_counts() -> None:
    lines = [line("tool.crashed", "error", at, tool="x", turn="t", call="c") for at in (NOW - 5_000, NOW)]
    found = sifted(*lines, since=stamp_of(NOW - 1_000))
    assert [group.times for group in found.groups.values()] == [1]


@given(st.sampled_from(catalogue()))
def test_every_event_from_warning_on_has_a_subject_and_an_action(event: object) -> None:
    assert isinstance(event, type(catalogue()[0]))
    for level in WRITTEN[event.name].levels:
        found = sifted(line(event.name, level, exit="provider_down", reason="x", chat="slack/a/b/", cause="file"))
        loud = level in ("warning", "error") and event.name != "incident.opened"
        assert bool(found.groups) or not loud, event.name
        assert all(group.issue.action for group in found.groups.values())


def test_errors_that_differ_by_numbers_and_names_alone_are_alike() -> None:
    assert alike("chat 12 of 'ada': too long by 7") == alike("chat 99 of 'bob': too long by 1")
    assert delivery_issue("slack", "chat 12 gone").key == delivery_issue("slack", "chat 13 gone").key


def test_a_model_with_the_separator_in_its_name_keeps_it() -> None:
    issue = turn_issue("broken_in_text|h|a|b|-|S")
    assert issue.title == "replies break off in the middle of their text – a|b at h"
    assert turn_issue("exit_of_tomorrow|h|m|-|-").action
    assert event_issue("event.of_tomorrow", "warning", ()).action


def test_each_exit_and_each_refusal_has_an_action_that_names_keys_that_exist() -> None:
    sections = [(name, field.annotation) for name, field in schema().model_fields.items()]
    known = {
        (name, key)
        for name, section in sections
        if isinstance(section, type) and issubclass(section, Section)
        for key in section.model_fields
    }
    said = [record.operator for record in EXITS.values()] + [delivery_action(cause) for cause in Cause]
    assert all(len(words) > 10 for words in said)
    named = {found for words in said for found in re.findall(r"\[(\w+)\] (\w+)", words)}
    assert len(named) > 5
    assert named - known == set()


@given(st.integers(1, 100_000))
def test_what_happens_again_and_again_is_said_ever_more_rarely(times: int) -> None:
    said = [n for n in range(1, min(times, 3_000) + 1) if worth_saying(n)]
    assert said[0] == 1
    assert len(said) <= min(times, 3_000).bit_length()
    assert all(later == 2 * before for before, later in pairwise(said))


def test_one_failure_added_is_one_failure_more() -> None:
    groups: Groups = {}
    add(groups, SeenFailure(ISSUES[3], NOW))
    assert [group.times for group in groups.values()] == [1]


def test_what_a_library_remarks_stands_behind_everything_that_hurt() -> None:
    remark = line("library.message", "warning", NOW + 9, logger="slack_bolt", message="token will be unused")
    found = sifted(*[remark] * 50, ended(1, "provider_down"))
    titles = [group.issue.title for group in ranked(found.groups, found.newest_ms)]
    assert titles == ["the model is not available", "library.message: slack_bolt"]


def test_the_storages_trouble_is_told_in_its_own_words_and_not_in_those_for_a_person() -> None:
    failing = line("storage.failing", "error", error="disk is full")
    told_them = line("telegram.not_stored", "warning", NOW + 9, words="Send it again in a minute.")
    (group,) = sifted(failing, told_them).groups.values()
    assert (group.times, group.words[1]) == (2, "disk is full")


@pytest.mark.parametrize("words", ["Forbidden: bot was blocked by the user", "403: Cannot send messages to this user"])
def test_who_blocked_the_bot_is_one_group_however_the_platform_says_it(words: str) -> None:
    assert delivery_issue("x", cause_of(words)) == delivery_issue("x", Cause.BLOCKED.value)
    assert cause_of("chat 12 is gone") == "chat 12 is gone"
