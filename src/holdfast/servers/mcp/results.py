"""How does an observation look to an MCP client?

The upstream's own answer as it came; the observation rides beside it in `_meta`. What was refused, failed, is
held or uncertain is one readable paragraph: what happened, and what to do next (NAM-5).
"""

from collections.abc import Mapping
from typing import Any, Final

import orjson
from mcp_types import SERVER_INFO_META_KEY

from holdfast.model.observation import Observation, Status

OBSERVATION: Final = "holdfast/observation"
WHO: Final = SERVER_INFO_META_KEY
"""Says who answered: we did, whatever an upstream says of itself."""
SHOWN_FAULTS = 8
"""Field errors told in the paragraph; all of them are in the observation."""

NEXT: Mapping[str, str] = {
    "none": "Nothing needs to be done",
    "search_tools": "List the tools again and choose one that is there",
    "choose_another_version": "Ask for a version that exists, or for none",
    "retry_later_or_use_fallback": "Try again later, or use another tool",
    "ask_operator_to_accept_change": "An operator has to look at how this tool changed and accept it",
    "ask_for_access": "Ask for access, or do without",
    "repair_arguments": "Correct the arguments and call again",
    "replan_or_ask_for_facts": "Check the facts, then call again with other arguments",
    "ask_why_not": "Do not try around this; an operator can say why it is not allowed",
    "refresh_state_and_replan": "Read the current state, then decide again",
    "refresh_then_retry": "Read the current state, then call again",
    "wait_for_approval_then_call_again": "Once it is approved, call this tool again with the same arguments",
    "stop_or_propose_something_else": "Do not repeat this call; do something else or ask the user",
    "request_budget": "Ask an operator for more budget",
    "wait_then_retry": "Wait, then call again",
    "tell_operator": "Tell an operator",
    "add_key": "Call again with an `idempotency_key` that names this operation",
    "wait_then_retry_same_key": "Wait, then call again with the same key",
    "use_a_new_key_for_a_new_operation": "Use a new key for a new operation",
    "check_what_happened_then_use_a_new_key": "Check what happened, then use a new key if it is still wanted",
    "retry_same_key": "Call again with the same key",
    "call_again_if_still_wanted": "Call again if it is still wanted",
    "check_target_state": "Check the state of the target before anything else",
    "compensate": "What was done has to be undone; ask the user",
    "reconcile_by_hand": "A person has to put this right by hand",
    "ask_again_with_same_key_or_settle": (
        "Do not do it another way: check whether it happened, or call again with the same arguments and key, "
        "which asks what became of it and does not repeat it"
    ),
}
"""The remedies of the code table, in words for a model."""


def brief(observation: Observation, *, raw: bool = False) -> dict[str, Any]:
    """The observation as JSON data, without what the result says already; `raw` as `orjson` takes it."""
    members = observation.to_dict()
    members.pop("native", None)
    if observation.native is not None:
        members.pop("data", None)
    if raw:
        return members
    told: dict[str, Any] = orjson.loads(orjson.dumps(members))
    return told


def rendered(observation: Observation, *, command: str = "holdfast", raw: bool = False) -> dict[str, Any]:
    """The result of `tools/call`."""
    native = observation.native
    if native is not None and _is_answer(native):
        result = dict(native)
    elif observation.pending is not None:
        result = {"content": [_text(paragraph(observation, command))], "isError": False}
    elif native is None and observation.status in (Status.DONE, Status.PARTIAL, Status.PREVIEW):
        result = _own(observation)
    else:
        result = {"content": [_text(paragraph(observation, command))], "isError": True}
    whole = raw and native is None  # then the bytes that are stored are the bytes to send
    told = orjson.Fragment(observation.to_json()) if whole else brief(observation, raw=raw)
    return with_meta(result, {OBSERVATION: told})


def with_meta(result: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """Puts more into the `_meta` of a result; both are nobody else's."""
    given = result.get("_meta")
    result["_meta"] = {**given, **more} if given is not None and isinstance(given, Mapping) else more
    return result


def enveloped(
    whole: dict[str, Any], stamp: Mapping[str, Any] | None, *, keeps: bool = False, own: bool = False
) -> dict[str, Any]:
    """The result with the envelope of its era: who answered, what kind it is, how long it may be kept.

    `stamp` is what a modern result says in `_meta` of who answered; older ones say nothing. A result that is
    nobody else's (`own`) is not copied first.
    """
    result = whole if own else whole.copy()
    given = result.pop("_meta", None)
    meta = given if type(given) is dict or isinstance(given, Mapping) else {}
    if WHO in meta:
        meta = {name: one for name, one in meta.items() if name != WHO}
    if stamp is None:
        result.pop("resultType", None)
        if meta:
            result["_meta"] = meta
        return result
    kind = result.setdefault("resultType", "complete")
    if keeps and kind == "complete":
        result.setdefault("ttlMs", 0)
        result["cacheScope"] = "private"  # what one caller may read is not for another
    result["_meta"] = {**meta, **stamp}
    return result


def paragraph(observation: Observation, command: str = "holdfast") -> str:
    """What happened and what to do, for a model and the person behind it."""
    faults = [fault.message for fault in observation.field_errors[:SHOWN_FAULTS]]
    said = "; ".join(faults) if len(faults) > 1 else observation.message
    if observation.status is Status.HELD and observation.approval is not None:
        said = (said or "").partition(";")[0]  # the rest speaks of keys, which this client may not know
    sentences = [_sentence(said or f"the call is {observation.status.value}")]
    if observation.status is Status.UNKNOWN:
        sentences.append("It is not known whether this happened.")
    if observation.status is Status.HELD and observation.approval is not None:
        sentences.append(_asks(observation, command))
    if observation.pending is not None:
        sentences.append("It is not over: call again with the same arguments and key to hear of it.")
    else:
        sentences.append(_sentence(_next(observation)))
    code = f"{observation.code.value}, " if observation.code is not None else ""
    return " ".join([*sentences, f"({code}call {observation.call_id})"])


def _asks(observation: Observation, command: str) -> str:
    asked = observation.approval
    assert asked is not None  # noqa: S101  # whoever asks has looked
    where = f"at {asked.url} or " if asked.url.startswith("http") else ""
    return f"A person can approve it {where}with '{command} approve {asked.id}'."


def _next(observation: Observation) -> str:
    remedy = observation.remedy
    said = NEXT.get(remedy.next_action, remedy.next_action.replace("_", " "))
    if remedy.retry_after_ms is not None and observation.status is not Status.HELD:
        said += f" (in {max(1, round(remedy.retry_after_ms / 1000))} s)"
    return said


def _sentence(text: str) -> str:
    text = text.strip()
    text = text[:1].upper() + text[1:] if not text.startswith(("'", '"')) else text
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _is_answer(native: Mapping[str, Any]) -> bool:
    return native.get("resultType", "complete") == "complete" and isinstance(native.get("content"), list)


def _own(observation: Observation) -> dict[str, Any]:
    """What a tool that knows no MCP answers: its data as text, and as it is where it is an object."""
    data = observation.preview if observation.status is Status.PREVIEW else observation.data
    encoded = orjson.dumps(data)
    result: dict[str, Any] = {"content": [_text(encoded.decode())], "isError": False}
    if encoded.startswith(b"{") and observation.status is Status.DONE:
        result["structuredContent"] = orjson.loads(encoded)
    return result


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}
