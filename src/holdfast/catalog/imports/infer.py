"""What does a tool probably do, and what speaks for that?

A guess is a proposal for people. It lowers nothing by itself: only an operator who trusts an upstream's
annotations lets those, and those alone, decide.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.catalog.imports.descriptor import annotations
from holdfast.model.vocabulary import Effect, Undo

_VERBS = {
    Effect.READ_ONLY: """
        calculate check compare compute convert count describe diff download echo exists explain fetch
        find get grep head help info inspect list lookup ls peek ping preview query read resolve
        retrieve search show stat status summarize tail tree validate view watch""",
    Effect.MEDIUM_RISK_WRITE: """
        add append apply archive assign attach change checkout clone close comment commit copy create
        disable duplicate edit enable fork import insert label link lock make mark merge mkdir modify
        move patch pin put rebase rename reopen replace reset restore save set share stage store sync
        tag toggle touch unlock update upload upsert write""",
    Effect.HIGH_RISK_EXTERNAL: """
        bash book call cancel charge click command delete deploy email erase eval exec execute fill
        forward install invite kill mail navigate notify order post publish push reject release remove
        reply restart rm run script send shell shutdown spawn sql start stop submit subscribe terminate
        transfer tweet uninstall unsubscribe""",
    Effect.CRITICAL_MUTATION: """
        destroy drop pay payment payout purchase purge refund revoke truncate wipe wire withdraw""",
}
_EFFECT = {verb: effect for effect, verbs in _VERBS.items() for verb in verbs.split()}
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_CODE = re.compile(r"(^|_)(sql|shell|bash|script|code|command|cmd|query_string|statement)$")
_UNDOABLE = frozenset(
    "add append assign attach create disable edit enable label link lock mark mkdir move pin rename".split()
)


@dataclass(frozen=True, slots=True)
class Guess:
    effect: Effect
    undo: Undo
    reasons: tuple[str, ...]
    trusted: bool
    """By annotations the operator trusts; else it is only a proposal."""


def infer(descriptor: Mapping[str, Any], *, trust_annotations: bool) -> Guess:
    """The likely effect with its reasons; by trusted annotations alone where there are some."""
    hinted = list(_hints(annotations(descriptor)))
    if trust_annotations and hinted:
        effect = _most(hinted)
        reasons = tuple(f"{why}, and this upstream's annotations are trusted" for _, why in hinted)
        return Guess(effect, Undo.NONE, reasons, trusted=True)
    found = [*_told(descriptor), *hinted]
    if not found:
        return Guess(Effect.HIGH_RISK_EXTERNAL, Undo.NONE, ("nothing says what it does",), trusted=False)
    return Guess(_most(found), _undo(descriptor), tuple(why for _, why in found), trusted=False)


def read_only(descriptor: Mapping[str, Any]) -> bool:
    """Whether its annotations say so without contradicting themselves."""
    hints = annotations(descriptor)
    return hints.get("readOnlyHint") is True and hints.get("destructiveHint") is not True


def _hints(hints: Mapping[str, Any]) -> Iterator[tuple[Effect, str]]:
    if hints.get("readOnlyHint") is True:
        if hints.get("destructiveHint") is True:
            yield Effect.HIGH_RISK_EXTERNAL, "its annotations say both 'readOnlyHint' and 'destructiveHint'"
        else:
            yield Effect.READ_ONLY, "its annotations say 'readOnlyHint'"
        return
    if hints.get("destructiveHint") is True:
        yield Effect.HIGH_RISK_EXTERNAL, "its annotations say 'destructiveHint'"
    elif hints.get("destructiveHint") is False:
        if hints.get("openWorldHint") is False:
            yield Effect.LOW_RISK_INTERNAL, "its annotations deny 'destructiveHint' and 'openWorldHint'"
        else:
            yield Effect.MEDIUM_RISK_WRITE, "its annotations deny 'destructiveHint'"
    elif hints.get("readOnlyHint") is False:
        yield Effect.MEDIUM_RISK_WRITE, "its annotations deny 'readOnlyHint'"
    if hints.get("openWorldHint") is True:
        yield Effect.MEDIUM_RISK_WRITE, "its annotations say 'openWorldHint': others may see what it does"


def _told(descriptor: Mapping[str, Any]) -> Iterator[tuple[Effect, str]]:
    """What its name, its arguments and the first words of its description tell."""
    for word in _verbs(_words(str(descriptor.get("name", "")))):
        yield _EFFECT[word], f"its name says '{word}'"
    schema = descriptor.get("inputSchema")
    properties = schema.get("properties") if isinstance(schema, dict) else None
    for name in properties if isinstance(properties, dict) else ():
        if _CODE.search(name.lower()):
            yield Effect.HIGH_RISK_EXTERNAL, f"its argument '{name}' takes code to run"
    sentence = re.split(r"[.\n]", str(descriptor.get("description") or "").strip(), maxsplit=1)[0]
    for word in _verbs(_words(sentence)[:1]):
        yield _EFFECT[word], f"its description begins with '{word}'"


def _most(found: list[tuple[Effect, str]]) -> Effect:
    """The gravest of all that is said: a hint that it only reads does not take back what its name says."""
    return max((effect for effect, _ in found), key=lambda effect: effect.rank)


def _undo(descriptor: Mapping[str, Any]) -> Undo:
    words = _words(str(descriptor.get("name", "")))
    return Undo.SEMANTIC if words and words[0] in _UNDOABLE else Undo.NONE


def _verbs(words: list[str]) -> Iterator[str]:
    """The first verb, and those joined to it; the rest are usually what it is done to."""
    joined = True
    for word in words:
        if joined and (stem := _stem(word)) is not None:
            yield stem
            joined = False
        elif word in ("and", "or", "then"):
            joined = True


def _stem(word: str) -> str | None:
    endings = ("", "s", "es", "ed", "ing")
    stems = [word.removesuffix(ending) for ending in endings] + [f"{word.removesuffix('ing')}e"]
    return next((stem for stem in stems if stem in _EFFECT), None)


def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]
