"""Do the parts of a contract agree with each other?

S4's class table and the cross-field rules (CON-3), each a small function that yields what is wrong.
"""

import re
from collections.abc import Callable, Iterator
from datetime import date
from typing import Any

from holdfast.model import defaults
from holdfast.model.contract import CHAINS, Contract
from holdfast.model.derive import UNDOABLE
from holdfast.model.scopes import check as check_scope
from holdfast.model.version import parse_version
from holdfast.model.vocabulary import Effect, Floor, ToolStatus, Undo

_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # a token of RFC 9110
_FRAMING = frozenset({"host", "content-length", "content-type", "transfer-encoding", "connection", "upgrade"})
_LOOKUP = re.compile(r"[a-z][a-z0-9_]*")
_TAKEN = frozenset({"args", "key", "result", "state", "true", "false", "null", "in"})


def rule_faults(contract: Contract) -> Iterator[str]:
    """Everything the rules object to. What was imported need not keep the class table yet; CON-8."""
    for rule in SHAPE:
        yield from rule(contract)
    if contract.identity.status is not ToolStatus.PROVISIONAL:
        for rule in CLASS_TABLE:
            yield from rule(contract)


def _version(contract: Contract) -> Iterator[str]:
    try:
        parse_version(contract.version)
    except ValueError as error:
        yield f"'identity.version': {error}"


def _dates(contract: Contract) -> Iterator[str]:
    identity = contract.identity
    read = {}
    for name in ("deprecated_on", "sunset_on"):
        if (text := getattr(identity, name)) is not None:
            try:
                read[name] = date.fromisoformat(text)
            except ValueError:
                yield f"'identity.{name}' is '{text}'; write a date as '2030-12-31'"
    if len(read) == 2 and read["sunset_on"] < read["deprecated_on"]:
        yield "'identity.sunset_on' is before 'identity.deprecated_on'; deprecate first"


def _timeout(contract: Contract) -> Iterator[str]:
    runtime = contract.runtime
    limit = defaults.TIMEOUT_S[runtime.timeout_class]
    if runtime.timeout_ms is not None and runtime.timeout_ms > limit * 1000:
        yield (
            f"'runtime.timeout_ms' of {runtime.timeout_ms} is beyond class '{runtime.timeout_class}' "
            f"({limit:g} s); it may only narrow it, so choose a longer class"
        )


def _scopes(contract: Contract) -> Iterator[str]:
    for scope in contract.security.required_scopes:
        if (fault := check_scope(scope)) is not None:
            yield f"'security.required_scopes': {fault}"


def _tenant_argument(contract: Contract) -> Iterator[str]:
    name = contract.security.tenant_argument
    if name is not None and name not in _properties(contract):
        yield f"'security.tenant_argument' names '{name}', which is no property of the input schema"


def _credentials(contract: Contract) -> Iterator[str]:
    """What no caller may give is in no schema, and a header that frames a message is nobody's to set."""
    key = contract.idempotency
    for index, credential in enumerate(contract.security.credentials):
        where, name = f"'security.credentials.{index}'", credential.name
        if credential.place == "argument" and _properties(contract).get(name, False) is not False:
            yield f"{where}: '{name}' is in the input schema, where a model could fill it; take it out there"
        if credential.place == "header" and name.lower() in _FRAMING:
            yield f"{where}: '{name}' says where a message ends or goes, and cannot carry a secret"
        if key is not None and key.upstream == credential.place and (key.name or "").lower() == name.lower():
            yield f"{where}: '{name}' carries the key already; name another {credential.place}"


def _lookups(contract: Contract) -> Iterator[str]:
    for name in contract.lookups:
        if not _LOOKUP.fullmatch(name) or name in _TAKEN:
            yield f"'lookups.{name}' is no usable name; use letters, digits, '_' and none of {_words()}"


def _words() -> str:
    return ", ".join(f"'{word}'" for word in sorted(_TAKEN))


def _read(contract: Contract) -> Iterator[str]:
    """A read promises to change nothing, so it has nothing to undo or to look for."""
    if contract.effect.writes:
        return
    promise = contract.transactional
    for name in ("manifest", "compensation", "probe", "postconditions", "verification"):
        if getattr(promise, name):
            yield f"READ_ONLY changes nothing, yet 'transactional.{name}' is declared; state the true effect"


def _cache(contract: Contract) -> Iterator[str]:
    if contract.effect.writes and contract.runtime.cache_ttl_s is not None:
        yield f"'runtime.cache_ttl_s' is for READ_ONLY, not {contract.effect}; no write comes from a cache"


def _key(contract: Contract) -> Iterator[str]:
    promise = contract.idempotency
    if promise is None or promise.upstream not in ("argument", "header"):
        return
    if not promise.name:
        yield f"'idempotency.upstream' is '{promise.upstream}'; name it in 'idempotency.name'"
    elif promise.upstream == "header" and not _HEADER.fullmatch(promise.name):
        yield f"'idempotency.name' is '{promise.name}', which is no header name"
    elif promise.upstream == "argument" and not _takes_text(_properties(contract).get(promise.name, {})):
        yield f"argument '{promise.name}' is to carry the key but takes no string; name another one"


def _composed(contract: Contract) -> Iterator[str]:
    """Whoever acts by itself cannot say that others are asked about it."""
    if contract.transactional.composed and contract.identity.namespace != CHAINS:
        yield "'transactional.composed' is for chains; leave it out"


def _job(contract: Contract) -> Iterator[str]:
    """What is only submitted says how it is asked after; nobody but the gateway gives the way back."""
    job, path = contract.runtime.job, "'runtime.job"
    if job is None:
        return
    if job.poll.tool == contract.tool:
        yield f"{path}.poll' names the tool itself; name one that tells how far the job is"
    if job.slowest_s < job.every_s:
        yield f"{path}.slowest_s' of {job.slowest_s:g} is less than 'every_s' ({job.every_s:g})"
    if contract.transactional.composed:
        yield f"{path}' is for tools of upstreams; a chain goes on by itself"
    if contract.runtime.cache_ttl_s is not None and job.callback is not None:
        yield f"{path}.callback' with 'runtime.cache_ttl_s': what comes from a cache calls nobody back"
    if job.callback is not None and not contract.effect.writes:
        yield f"{path}.callback' is for writes: a read is asked after by its own call"
    if job.callback is not None and _properties(contract).get(job.callback, False) is not False:
        name = job.callback
        yield f"{path}.callback': '{name}' is in the input schema, where a model could fill it; take it out"


def _session(contract: Contract) -> Iterator[str]:
    """Callers know a session by a text of ours, and whoever is to end it must not be kept from that."""
    said, where = contract.transactional.session, "'transactional.session'"
    if said is None:
        return
    if said.role != "step" and not contract.effect.writes:
        yield f"{where}: role '{said.role}' changes what the upstream keeps, yet it is READ_ONLY"
    if contract.runtime.job is not None or contract.runtime.cache_ttl_s is not None:
        yield f"{where}: what works in a session answers at once and anew; take 'job' and 'cache_ttl_s' out"
    if said.role == "begin":
        return
    required = contract.affordance.input_schema.get("required", ())
    if said.handle not in _properties(contract) or said.handle not in required:
        yield f"{where}: 'handle' of role '{said.role}' names '{said.handle}', which is no required argument"
    elif not _takes_text(_properties(contract)[said.handle]):
        yield f"{where}: argument '{said.handle}' is to carry the session but takes no string"
    if said.role != "rollback":
        return
    if more := [name for name in required if name != said.handle]:
        yield f"{where}: whoever rolls back knows the session alone; '{more[0]}' cannot be required"
    if contract.security.approval_floor is not Floor.NONE:
        yield f"{where}: nobody may have to wait for a rollback; set 'security.approval_floor' to 'none'"


def _compensates(contract: Contract) -> Iterator[str]:
    promise = contract.transactional
    wanting = any(post.on_failure == "compensate" for post in promise.postconditions)
    if wanting and promise.compensation is None:
        yield "a postcondition wants to compensate, but no 'transactional.compensation' is declared"


def _write(contract: Contract) -> Iterator[str]:
    if not contract.effect.writes:
        return
    if not contract.transactional.manifest:
        yield "a write lists what it changes, as (resource, operation, scope) in 'transactional.manifest'"
    if contract.idempotency is None:
        yield "a write declares 'idempotency'; say 'upstream: none' if the upstream knows no keys"
    if not contract.observability.audit_required:
        yield "a write is always recorded; leave 'observability.audit_required' true"


def _undo(contract: Contract) -> Iterator[str]:
    promise = contract.transactional
    if not contract.effect.writes or promise.undo in UNDOABLE:
        return
    if contract.security.approval_floor is Floor.NONE and not promise.composed:
        yield f"undo '{promise.undo}' needs approval; set 'security.approval_floor' to 'user' or more"
    if promise.undo is Undo.NONE and promise.preview is None:
        yield "undo 'none' needs 'transactional.preview', so that people see what would happen"


def _medium(contract: Contract) -> Iterator[str]:
    promise = contract.transactional
    if not contract.effect.at_least(Effect.MEDIUM_RISK_WRITE) or contract.effect is Effect.CRITICAL_MUTATION:
        return  # a critical mutation needs more, below
    if promise.undo is Undo.NONE and promise.compensation is None and not promise.rollback_plan:
        yield f"{contract.effect} needs an undo, a 'compensation' or a 'rollback_plan'"


def _high(contract: Contract) -> Iterator[str]:
    if contract.effect is not Effect.HIGH_RISK_EXTERNAL:
        return
    if not (contract.transactional.composed or contract.security.approval_floor.at_least(Floor.USER)):
        yield "HIGH_RISK_EXTERNAL needs approval; set 'security.approval_floor' to 'user' or more"
    promise = contract.transactional
    if not (promise.postconditions or promise.probe or promise.verification):
        yield "HIGH_RISK_EXTERNAL is checked afterwards; declare 'postconditions', 'probe' or 'verification'"


def _critical(contract: Contract) -> Iterator[str]:
    if contract.effect is not Effect.CRITICAL_MUTATION:
        return
    if not (contract.transactional.composed or contract.security.approval_floor.at_least(Floor.TWO_PERSON)):
        yield "CRITICAL_MUTATION needs two people; set 'security.approval_floor' to 'two_person' or more"
    promise = contract.transactional
    if not (promise.postconditions or promise.probe):
        yield "CRITICAL_MUTATION needs 'postconditions' or a 'probe', so that its outcome can be known"
    if promise.compensation is None and not promise.rollback_plan:
        yield "CRITICAL_MUTATION needs a way back; declare a 'compensation' or a 'rollback_plan'"


Rule = Callable[[Contract], Iterator[str]]

SHAPE: tuple[Rule, ...] = (
    _version,  # which version is it
    _dates,  # and until when
    _timeout,  # timeout_ms only narrows the class
    _scopes,  # who may use it
    _tenant_argument,  # whose data it may name
    _credentials,  # what the gateway adds, and nobody else
    _lookups,  # names its rules can use
    _read,  # a read has no effects
    _cache,  # a write has no cache
    _key,  # where the key goes
    _job,  # how what it submits is followed
    _compensates,  # nothing promised that cannot be done
    _composed,  # nobody else's approval claimed
    _session,  # whatever is begun at the upstream can be ended
)

CLASS_TABLE: tuple[Rule, ...] = (
    _write,  # every write: manifest, idempotency, record
    _undo,  # no way back: approval and preview
    _medium,  # an undo or a plan
    _high,  # approval and a check afterwards
    _critical,  # two people, a check and a way back
)


def _properties(contract: Contract) -> dict[str, Any]:
    found = contract.affordance.input_schema.get("properties", {})
    return found if isinstance(found, dict) else {}


def _takes_text(schema: Any) -> bool:
    if not isinstance(schema, dict) or "type" not in schema:
        return True
    kind = schema["type"]
    return kind == "string" or (isinstance(kind, list) and "string" in kind)
