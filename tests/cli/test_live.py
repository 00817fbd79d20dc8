"""Can somebody answer everything that waits at a terminal, with keys, and only what they see?"""

import re
from dataclasses import replace

import pytest

from holdfast.cli.inbox import LEAVE, Inbox, Wish
from holdfast.cli.keyboard import keys
from holdfast.cli.live import left
from holdfast.model.approval import Answer, Approval
from holdfast.model.operation import OperationRef
from tests.cli.conftest import Holdfast
from tests.cli.desk_tools import effects
from tests.cli.terminal import at_terminal
from tests.requirements import requirement


def hold(holdfast: Holdfast, days: int) -> str:
    asked = ("call", "desk.close_all", "--args", f'{{"older_than_days": {days}}}', "--key", f"k{days}")
    ended = holdfast(*asked, "--release", "gateway", "--json")
    assert ended.code == 4
    return str(ended.json["approval"]["id"])


@requirement("APR-1", "APR-7", "PPL-1")
def test_two_people_approve_with_keys_what_the_packet_shows(holdfast: Holdfast) -> None:
    id = hold(holdfast, 9)
    for person, told in (("ana", "still waits for 1 x operator"), ("ben", f"approved  {id}")):
        with at_terminal("approvals", "--as", person) as terminal:
            terminal.until(f"1 waits for {person}", "desk.close_all@1.0.0", id)
            terminal.press("a")
            terminal.until("UPDATE tickets", '"older_than_days": 9', f"approve as {person}? y/N")
            assert effects() == []
            terminal.press("y")
            terminal.until(told)
            terminal.press("q")
            assert terminal.ended() == 0
    assert effects() == ["close all 9"]


@requirement("APR-3", "APR-7")
def test_the_list_follows_what_is_asked_and_answered_elsewhere(holdfast: Holdfast) -> None:
    with at_terminal("approvals", "--as", "ana") as terminal:
        terminal.until("nothing waits for ana")
        first = hold(holdfast, 1)
        terminal.until("1 waits for ana", first)
        second = hold(holdfast, 2)
        terminal.until("2 wait for ana", second)
        terminal.press("\r")
        terminal.until('"older_than_days": ')
        opened = first if f"pending  {first}" in terminal.said else second
        assert holdfast("deny", opened, "--as", "ben").code == 0
        terminal.until(f"{opened} waits no more", "1 waits for ana")
        terminal.interrupt()
        assert terminal.ended() == 0


@requirement("APR-7")
def test_whoever_does_not_say_yes_has_decided_nothing(holdfast: Holdfast) -> None:
    id = hold(holdfast, 9)
    with at_terminal("approvals", "--as", "ana") as terminal:
        terminal.until(id)
        terminal.press("d")
        terminal.until("deny as ana? y/N")
        terminal.press("\r")
        terminal.until("nothing was decided")
        terminal.press("q")
        terminal.until("enter open")
        terminal.press("q")
        assert terminal.ended() == 0
    (listed,) = holdfast("approvals", "--as", "ana", "--json").json["approvals"]
    assert (listed["id"], listed["votes"]) == (id, [])


@requirement("APR-2", "APR-7")
def test_whoever_may_not_answer_is_told_why_and_goes_on(holdfast: Holdfast) -> None:
    id = hold(holdfast, 9)
    with at_terminal("approvals") as terminal:  # whoever asked sees it, too
        terminal.until(id)
        terminal.press("a")
        terminal.until("? y/N")
        terminal.press("y")
        terminal.until("error: ")
        terminal.press("q")
        assert terminal.ended() == 0
    assert effects() == []


@requirement("APR-1")
def test_a_packet_longer_than_the_screen_says_so_and_can_be_read_to_its_end(holdfast: Holdfast) -> None:
    id = hold(holdfast, 9)
    with at_terminal("approvals", "--as", "ana", rows=14) as terminal:
        terminal.until(id)
        terminal.press("\r")
        terminal.until("more below")
        assert "no preview" not in terminal.said
        terminal.press("a")
        terminal.until("approve as ana? y/N", "more below")
        terminal.press("   ")
        terminal.until("no preview", "approve as ana? y/N")  # reading on was no answer


@requirement("NAM-1", "PPL-1")
@pytest.mark.parametrize("option", ["--once", "--json"])
def test_at_a_terminal_the_list_is_printed_where_that_is_asked_for(holdfast: Holdfast, option: str) -> None:
    id = hold(holdfast, 9)
    with at_terminal("approvals", "--as", "ana", option) as terminal:
        assert terminal.ended() == 0
    assert id in terminal.said
    assert "enter open" not in terminal.said


def asked(id: str) -> Approval:
    return Approval(
        id=id,
        ref=OperationRef("t", "ann", "desk.close_all", id),
        call_id=f"call_{id}",
        fingerprint="f",
        contract_digest="d",
        need={"operator": 1},
        answer=Answer.PENDING,
        votes=(),
        packet={},
        created_at=0.0,
        expires_at=9.0,
    )


@requirement("APR-1")
def test_a_yes_is_for_what_was_shown_even_when_the_list_moves() -> None:
    inbox = Inbox()
    inbox.take([asked("a"), asked("b")])
    inbox.press("j")
    inbox.press("a")
    inbox.take([asked("new"), replace(asked("b"), level=1), asked("a")])
    assert inbox.press("y") == Wish("approve", "b")
    inbox.take([asked("a")])
    assert inbox.opened is None
    assert inbox.press("y") is None
    assert inbox.press("q") == LEAVE


def test_a_yes_to_what_is_gone_goes_nowhere() -> None:
    inbox = Inbox()
    inbox.take([asked("a"), asked("b")])
    inbox.press("d")
    inbox.take([asked("b")])
    assert re.match("a waits no more", inbox.said)
    assert inbox.press("y") is None
    inbox.take([])
    assert [inbox.press(key) for key in ("j", "k", "a", "d", "y", "enter")] == [None] * 6


def test_keys_are_told_apart_and_unknown_ones_say_nothing() -> None:
    assert list(keys(b"ja\r\x1b[A\x1b[B\x1b")) == ["j", "a", "enter", "k", "j", "escape"]
    assert list(keys(b"\x1b[15~\x1b[1;5Cq")) == ["q"]


def test_time_is_told_in_the_unit_that_people_count_in() -> None:
    assert [left(s) for s in (-1, 59, 119, 120, 7_300, 200_000)] == [
        "0 s",
        "59 s",
        "119 s",
        "2 min",
        "2 h",
        "2 d",
    ]
