"""A choice that a tool makes is declared in a file or in Python, checked, guessed and drawn."""

from typing import Any

import pytest

from holdfast.chains.algebra import chain, choose, step
from holdfast.chains.check import Report, check
from holdfast.chains.declared import Choice
from holdfast.chains.drawing import mermaid
from holdfast.chains.reading import read
from holdfast.chains.writing import written
from holdfast.model.errors import ConfigError
from tests.chains.tools import FIND, RESERVE, TEXT, TOOLS, chained, contract, things
from tests.requirements import requirement

SURE = {"type": "number", "minimum": 0, "maximum": 1}
KIND = {"enum": ["find", "reserve", "other"]}
TOLD = things(choice=KIND, confidence=SURE)
DEEP = things(found={"type": "array", "items": TOLD, "minItems": 1})
GUESSES = {
    one.tool: one
    for one in (
        contract("mind.guess", things(sku=TEXT), TOLD, p99_ms=1000, availability=0.5),
        contract("mind.deep", things(sku=TEXT), DEEP),
        contract("mind.vague", things(sku=TEXT)),
    )
}
ASK = {"id": "guess", "tool": "mind.guess", "with": {"sku": "=input.sku"}}
CASES: dict[str, Any] = {"find": [FIND], "reserve": [RESERVE]}


def branch(ask: dict[str, Any] = ASK, cases: Any = CASES, **said: Any) -> dict[str, Any]:
    return {"branch": {"ask": ask, "cases": cases, **said}}


def checked(*steps: dict[str, Any], **said: Any) -> Report:
    tools = TOOLS | GUESSES
    return check(chained(*steps, **said), lambda tool, version: tools.get(tool))


@requirement("CHN-1", "CHN-2")
def test_the_same_choice_in_a_file_and_in_python_and_written_down_again() -> None:
    tree = {
        "chain": "order",
        "steps": [
            branch(
                choice="=intents[0].name",
                confidence="intents[0].p",
                threshold=0.7,
                otherwise=RESERVE | {"id": "r2"},
            )
        ],
    }
    made = chain(
        "order",
        choose(
            step("guess", "mind.guess", sku="=input.sku"),
            {
                "find": step("find", "shop.find", sku="=input.sku"),
                "reserve": step("reserve", "shop.reserve", sku="=input.sku"),
            },
            otherwise=step("r2", "shop.reserve", sku="=input.sku"),
            choice="intents[0].name",
            confidence="intents[0].p",
            threshold=0.7,
        ),
    )
    assert written(read(tree)) == written(made)
    assert written(read(written(made))) == written(made)
    [node] = made.body
    assert isinstance(node, Choice)
    assert node.cases[1].body[0].place == ("steps", 0, "branch", "cases", "reserve", 0)
    with pytest.raises(ValueError, match="one step chooses"):
        choose(step("a", "t.a") >> step("b", "t.b"), {})


@requirement("CHN-1", "CHN-2")
@pytest.mark.parametrize(
    ("node", "told"),
    [
        (branch(cases={}), "steps[0].branch.cases: name one case at least"),
        (branch(threshold=0), "steps[0].branch.threshold: this must be above 0"),
        (branch(threshold=1.5), "steps[0].branch.threshold: this must be above 0"),
        (branch(threshold=True), "steps[0].branch.threshold: this must be above 0"),
        (branch(cases={True: [FIND]}), "steps[0].branch.cases.True: a case has a name of 1 to 64"),
        (branch(cases={"a\nb": [FIND]}), "a case has a name of 1 to 64"),
        (branch(cases={"find": []}), "steps[0].branch.cases.find: write a list with one step at least"),
        (branch(ask={"with": {}}), "steps[0].branch.ask: this is a mapping with 'tool' and 'with'"),
        (branch(ask={**ASK, "when": "true"}), "steps[0].branch.ask.when: 'when' is not known here"),
        (branch(els=[FIND]), "steps[0].branch.els: 'els' is not known here"),
        (branch(cases={"find": [ASK]}), "another step is called 'guess' already"),
    ],
)
def test_what_is_no_choice_is_told_where(node: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError) as refused:
        chained(node)
    assert told in str(refused.value)


@requirement("CHN-2")
def test_whoever_is_asked_has_a_name_of_its_own_where_none_is_said() -> None:
    ask = {"tool": "mind.guess", "with": {"sku": "=input.sku"}}
    [node] = chained(branch(ask=ask)).body
    assert isinstance(node, Choice)
    assert (node.ask.id, node.choice, node.confidence, node.threshold) == (
        "choice",
        "choice",
        "confidence",
        0.8,
    )


@requirement("CHN-1", "CHN-2")
@pytest.mark.parametrize(
    ("node", "told"),
    [
        (branch(), None),
        (
            branch(
                ask={**ASK, "tool": "mind.deep"}, choice="found[0].choice", confidence="found[0].confidence"
            ),
            None,
        ),
        (branch(ask={**ASK, "tool": "mind.vague"}), None),
        (branch(ask={**ASK, "tool": "mind.gone"}), "there is no tool 'mind.gone' here"),
        (
            branch(ask={**ASK, "tool": "shop.reserve"}),
            "'shop.reserve' writes; a tool that chooses only reads",
        ),
        (branch(ask={**ASK, "fallbacks": ["shop.reserve"]}), "a tool that chooses only reads"),
        (branch(ask={**ASK, "with": {}}), "'mind.guess' needs 'sku', which is not given"),
        (branch(choice="label"), "steps[0].branch.choice: there is no 'label'"),
        (branch(choice="["), "cannot be read"),
        (branch(confidence="choice"), "steps[0].branch.confidence: this is never a number"),
        (branch(cases={"findd": [FIND]}), "never answers 'findd'; this case would never be taken"),
        (
            branch(cases={"find": [{**FIND, "with": {"sku": "=guess.confidence"}}]}),
            "this value is never what 'shop.find' takes as 'sku'",
        ),
    ],
)
def test_a_choice_is_checked_before_anything_runs(node: dict[str, Any], told: str | None) -> None:
    found = [str(fault) for fault in checked(node).faults]
    assert found == [] if told is None else told in "\n".join(found), found


@requirement("CHN-2")
def test_what_may_be_named_and_has_no_case_is_said_and_what_a_case_did_may_be_missing() -> None:
    use = {"id": "use", "tool": "shop.find", "with": {"sku": "=find.id"}}
    notes = "\n".join(map(str, checked(branch(), use).notes))
    assert "it may name something that is no case; a person is asked then" in notes
    assert "'sku' is needed and may be missing" in notes
    rest = branch(otherwise=[{**FIND, "id": "else"}])
    assert "no case" not in "\n".join(map(str, checked(rest).notes))
    every = branch(cases={**CASES, "other": [{**FIND, "id": "third"}]})
    assert checked(every).notes == ()


@requirement("CHN-1", "CHN-2")
def test_a_choice_takes_as_long_as_asking_and_its_longest_case_and_comes_through_as_its_worst() -> None:
    guess = checked(branch(cases={"find": [FIND, {**FIND, "id": "again"}], "reserve": [RESERVE]})).estimate
    assert (guess.latency_ms, guess.steps) == (1200, 3)
    assert abs(guess.success - 0.5 * 0.9 * 0.9) < 1e-12
    short = checked(branch(), deadline_ms=1000).faults
    assert "takes about 1,100 ms" in str(short[0])


@requirement("CHN-2")
def test_a_choice_is_drawn_with_who_is_asked_its_cases_and_the_person() -> None:
    drawn = mermaid(chained(branch(), {**FIND, "id": "last"}))
    for line in (
        "  start --> guess",
        "  guess --> steps_0__branch",
        "  steps_0__branch -->|find| find",
        "  steps_0__branch -->|less than 0.8 sure| steps_0__branch_person",
        "  find --> last",
        "  reserve --> last",
    ):
        assert line in drawn.splitlines(), drawn
    assert "person" not in mermaid(chained(branch(otherwise=[{**FIND, "id": "rest"}])))


@requirement("CHN-2")
def test_a_case_with_brackets_in_its_name_is_drawn_in_quotes() -> None:
    drawn = mermaid(chained(branch(cases={"find (all)": [FIND], 'or "none"': [{**FIND, "id": "other"}]})))
    assert '  steps_0__branch -->|"find (all)"| find' in drawn.splitlines()
    assert "  steps_0__branch -->|or &quot;none&quot;| other" in drawn.splitlines()
