"""A chain is read from a file or written in Python, and comes out the same."""

from pathlib import Path
from typing import Any

import pytest

from holdfast.chains.algebra import branch, chain, repeat, step
from holdfast.chains.declared import Parallel, Undoing
from holdfast.chains.reading import load, read
from holdfast.model.errors import ConfigError
from tests.requirements import requirement

LINES = """
chain: order
saga: true
deadline_ms: 60000
steps:
  - {id: reserve, tool: shop.reserve, with: {sku: =input.sku}, retries: 2}
  - parallel:
      - {id: mail, tool: mail.send, with: {to: =input.mail}}
      - - {id: sms, tool: sms.send, with: {to: =input.phone}}
        - {id: seen, tool: sms.seen, with: {id: =sms.id}}
    join: {quorum: 0.5}
  - branch:
      - {when: reserve.cents > 100, do: [{id: big, tool: pay.charge}]}
      - {otherwise: {id: small, tool: pay.note}}
  - {repeat: 3, until: poll.ready, do: {id: poll, tool: shop.poll}}
"""


@requirement("CHN-1")
def test_the_same_chain_in_a_file_and_in_python(tmp_path: Path) -> None:
    (tmp_path / "order.yaml").write_text(LINES)
    written = (
        step("reserve", "shop.reserve", sku="=input.sku", retries_=2)
        >> (
            step("mail", "mail.send", to="=input.mail")
            | step("sms", "sms.send", to="=input.phone") >> step("seen", "sms.seen", id="=sms.id")
        ).joined(quorum=0.5)
        >> branch(("reserve.cents > 100", step("big", "pay.charge")), otherwise=step("small", "pay.note"))
        >> repeat(3, step("poll", "shop.poll"), until="poll.ready")
    )
    made = chain("order", written, saga=True, deadline_ms=60_000, source="order.yaml")
    read_ = load(tmp_path / "order.yaml")
    assert _bare(made.body) == _bare(read_.body)
    assert (made.name, made.saga, made.deadline_ms) == (read_.name, read_.saga, read_.deadline_ms)


def _bare(body: Any) -> str:
    """Without the places: one step needs no list in a file."""
    text = repr(body)
    while (at := text.find("place=(")) >= 0:
        text = text[:at] + text[text.index(")", at) + 1 :]
    return text


@requirement("CHN-3")
def test_three_that_are_joined_alike_are_one_group() -> None:
    [group] = (step("a", "t.a") | step("b", "t.b") | step("c", "t.c")).body
    assert isinstance(group, Parallel)
    assert len(group.branches) == 3
    with pytest.raises(ValueError, match="side by side"):
        step("a", "t.a").joined(first=True)


@requirement("CHN-1")
@pytest.mark.parametrize(
    ("tree", "told"),
    [
        ([], "a chain is a mapping"),
        ({"chain": "Bad Name", "steps": [{"id": "a", "tool": "t.a"}]}, "chain: a chain has a name"),
        ({"chain": "c", "steps": []}, "steps: write a list with one step at least"),
        ({"chain": "c", "stepps": [], "steps": [{"id": "a", "tool": "t.a"}]}, "did you mean 'steps'?"),
        ({"chain": "c", "steps": ["a"]}, "steps[0]: a step is a mapping"),
        ({"chain": "c", "steps": [{"id": "a"}]}, "says exactly one of them"),
        ({"chain": "c", "steps": [{"id": "a", "tool": "t.a", "parallel": []}]}, "says exactly one of them"),
        ({"chain": "c", "steps": [{"id": "input", "tool": "t.a"}]}, "steps[0].id: a step has a name"),
        (
            {"chain": "c", "steps": [{"id": "a", "tool": "t.a"}] * 2},
            "steps[1].id: another step is called 'a'",
        ),
        ({"chain": "c", "steps": [{"id": "a", "tool": "t.a", "retries": -1}]}, "must be from 0 to 10"),
        ({"chain": "c", "steps": [{"id": "a", "tool": "t.a", "retries": True}]}, "must be from 0 to 10"),
        ({"chain": "c", "steps": [{"id": "a", "tool": "t.a", "with": []}]}, "must be a mapping"),
        ({"chain": "c", "steps": [{"id": "a", "tool": "t.a", "failure": "panic"}]}, "say one of 'abort'"),
        ({"chain": "c", "steps": [{"id": "a", "tool": "t.a", "failure": "fallback"}]}, "stand in for it"),
        ({"chain": "c", "steps": [{"id": "a", "tool": "t.a", "undo": {"with": {}}}]}, "takes it back"),
        ({"chain": "c", "steps": [{"parallel": [{"id": "a", "tool": "t.a"}]}]}, "two branches at least"),
        (
            {
                "chain": "c",
                "steps": [
                    {"parallel": [{"id": "a", "tool": "t.a"}, {"id": "b", "tool": "t.b"}], "join": "some"}
                ],
            },
            "steps[0].join: say 'all', 'first'",
        ),
        (
            {
                "chain": "c",
                "steps": [
                    {
                        "branch": [
                            {"otherwise": {"id": "a", "tool": "t.a"}},
                            {"when": "true", "do": {"id": "b", "tool": "t.b"}},
                        ]
                    }
                ],
            },
            "the last one may say 'otherwise'",
        ),
        (
            {"chain": "c", "steps": [{"repeat": 0, "do": {"id": "a", "tool": "t.a"}}]},
            "must be from 1 to 1000",
        ),
        ({"chain": "c", "steps": [{"repeat": 5, "do": []}]}, "steps[0].do: write a list"),
    ],
)
def test_what_is_no_chain_is_told_where(tree: Any, told: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read(tree)
    assert told in str(refused.value)


@requirement("CHN-1")
def test_all_that_is_wrong_with_a_file_is_told_at_once() -> None:
    tree = {
        "chain": "c",
        "steps": [{"id": "a", "tool": 7, "with": []}, {"repeat": 0, "do": []}],
        "deadline_ms": 0,
    }
    with pytest.raises(ConfigError) as refused:
        read(tree, "c.yaml")
    first, *faults = str(refused.value).splitlines()
    assert first == "c.yaml is no chain"
    places = [line.strip().partition(":")[0] for line in faults]
    assert places == ["steps[0].tool", "steps[0].with", "steps[1].repeat", "steps[1].do", "deadline_ms"]


@requirement("CHN-1")
@pytest.mark.parametrize(("text", "told"), [("a: [", "is not valid YAML, line"), ("\0", "is not valid YAML")])
def test_a_file_that_cannot_be_read_says_so(text: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(text)
    with pytest.raises(ConfigError, match=told):
        load(tmp_path / "c.yaml")
    with pytest.raises(ConfigError, match="cannot read"):
        load(tmp_path / "none.yaml")


@requirement("SAG-1")
def test_an_undoing_is_written_in_both() -> None:
    told = {"tool": "pay.refund", "with": {"id": "=a.id"}}
    [declared] = read({"chain": "c", "steps": [{"id": "a", "tool": "t.a", "undo": told}]}).body
    made = step("a", "t.a", undo=Undoing(tool="pay.refund", arguments={"id": "=a.id"}))
    assert _bare(made.body) == _bare((declared,))
