"""Can an outside party tell who calls, or two of them that it is the same?"""

from dataclasses import replace

from holdfast.model.call import Principal
from holdfast.model.opaque import opaque, opaque_name
from holdfast.stores.keyring import Keyring
from tests.requirements import requirement

KEYS = Keyring(b"k" * 32)
BOT = Principal(user="alice", agent="refund-bot", act=("helper", "refund-bot"))


@requirement("AUT-7")
def test_a_caller_has_the_same_name_in_every_process_and_another_for_every_party() -> None:
    name = opaque(KEYS, BOT, "https://sts.example")
    assert name == opaque(Keyring(b"k" * 32), BOT, "https://sts.example")
    others = {
        opaque(KEYS, BOT, "https://other.example"),
        opaque(KEYS, replace(BOT, tenant="south"), "https://sts.example"),
        opaque(KEYS, replace(BOT, user="bob"), "https://sts.example"),
        opaque(KEYS, replace(BOT, act=("refund-bot",)), "https://sts.example"),
        opaque(Keyring(b"o" * 32), BOT, "https://sts.example"),
        opaque_name(KEYS, "default", "refund-bot", "https://sts.example"),
        opaque_name(KEYS, "default", "helper", "https://sts.example"),
    }
    assert len(others | {name}) == 8


@requirement("AUT-7")
def test_it_says_nothing_about_the_agent() -> None:
    name = opaque(KEYS, BOT, "https://sts.example")
    assert len(name) == 32
    assert all(word not in name for word in ("alice", "refund", "bot"))
