"""Does the configuration of channels say what was meant, and never hold a secret?"""

from typing import Any

import pytest

from holdfast.config import parse
from holdfast.model.errors import ConfigError
from tests.requirements import requirement

HOOK = {"url": "https://chat.example/hook", "secret": "${secret:hook}"}
MAIL = {"host": "mail.example", "sender": "gate@bank.example", "to": ["ops@bank.example"]}
SECRETS = {"hook": {"env": "HOOK"}, "own": {"env": "OWN", "tenant": "acme"}}


def tree(**channels: Any) -> dict[str, Any]:
    return {"secrets": SECRETS, "channels": channels}


@requirement("APR-7", "NAM-2")
def test_what_is_left_out_has_a_meaning() -> None:
    config = parse(tree(ops={"webhook": HOOK}, post={"mail": MAIL}), environ={})
    ops, post = config.channels["ops"], config.channels["post"]
    assert (ops.events, ops.roles, ops.tenants) == (("asked", "escalated", "alert"), (), ())
    assert post.mail is not None
    assert (post.mail.tls, post.mail.where, post.mail.to) == ("starttls", 587, {"*": ("ops@bank.example",)})
    ports = {tls: parse(tree(post={"mail": {**MAIL, "tls": tls}}), environ={}) for tls in ("tls", "none")}
    assert {tls: one.channels["post"].mail.where for tls, one in ports.items()} == {"tls": 465, "none": 25}  # type: ignore[union-attr]


@requirement("APR-7", "AUT-3")
def test_a_secret_is_pointed_at_and_never_shown() -> None:
    both = {"user": "gate", "password": "${WORD}"}
    config = parse(tree(ops={"webhook": HOOK}, post={"mail": MAIL | both}), environ={"WORD": "hunter22"})
    assert config.channels["ops"].webhook is not None
    assert config.channels["ops"].webhook.secret == "${secret:hook}"
    assert "hunter22" not in repr(config)


@requirement("APR-7", "NAM-2")
@pytest.mark.parametrize(
    ("channel", "says"),
    [
        ({"webhok": {}}, "channels.ops.webhok: unknown key 'webhok'; did you mean 'webhook'?"),
        ({"webhook": HOOK | {"secrt": "x"}}, "channels.ops.webhook.secrt: unknown key 'secrt'; did you mean"),
        ({}, "channels.ops: name either 'webhook' or 'mail'"),
        ({"webhook": HOOK, "mail": MAIL}, "channels.ops: name either 'webhook' or 'mail'"),
        ({"webhook": HOOK | {"secret": "whsec_plain"}}, "channels.ops.webhook.secret: no secret in the file"),
        ({"webhook": HOOK | {"secret": "a${HOOK}"}}, "channels.ops.webhook.secret: no secret in the file"),
        (
            {"mail": MAIL | {"user": "u", "password": "x"}},
            "channels.ops.mail.password: no secret in the file",
        ),
        ({"webhook": HOOK | {"secret": "${secret:hok}"}}, "there is no secret 'hok'; did you mean 'hook'?"),
        ({"webhook": HOOK | {"secret": "${secret:own}"}}, "'own' is for tenant 'acme' alone"),
        ({"webhook": HOOK | {"secret": "${UNSET}"}}, "environment variable 'UNSET' is not set"),
        ({"webhook": HOOK | {"url": "http://chat.example/x"}}, "it can be read on its way"),
        ({"webhook": HOOK | {"url": "https://u:p@chat.example/"}}, "this is no url of a webhook"),
        ({"webhook": HOOK | {"url": "https://127.1/x"}}, "channels.ops.webhook.url"),
        ({"webhook": HOOK, "events": ["askd"]}, "channels.ops.events.0: must be 'asked', 'escalated'"),
        ({"webhook": HOOK, "events": []}, "channels.ops.events: must not be empty"),
        ({"mail": MAIL | {"to": []}}, "channels.ops.mail.to: must not be empty"),
        ({"mail": MAIL | {"to": ["ops"]}}, "'ops' is no mail address; write 'name@host'"),
        ({"mail": MAIL | {"to": {"operator": ["a@b\nBcc: x@y"]}}}, "is no mail address"),
        ({"mail": MAIL | {"sender": "x"}}, "channels.ops.mail.sender: 'x' is no mail address"),
        (
            {"mail": MAIL | {"host": "mail.example:25"}},
            "write the name of a server, and its port under 'port'",
        ),
        ({"mail": MAIL | {"user": "u"}}, "'user' and 'password' go together"),
        (
            {"mail": MAIL | {"user": "u", "password": "${HOOK}", "tls": "none"}},
            "must not go over an open line",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_place(channel: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError) as told:
        parse(tree(ops=channel), environ={"HOOK": "w0rd-of-the-day"})
    assert says in str(told.value)
    assert "w0rd-of-the-day" not in str(told.value)
    assert len(str(told.value).split("\n")) == 2
