"""How does a Python function become a tool?

    @tool(effect=Effect.READ_ONLY, scopes=["orders:read"])
    async def get_order(order_id: str) -> Order:
        \"\"\"Look an order up by its number.\"\"\"

The schema comes from the type hints, the descriptions from the docstring. What the function does to the
world is never guessed: `effect` is stated. Nothing else is needed for a read; what a write must declare,
admission says.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, update_wrapper
from types import MethodType, ModuleType
from typing import Any, Generic, ParamSpec, TypeVar, Unpack

from pydantic import ValidationError
from pydantic_core import to_json, to_jsonable_python

from holdfast.model.contract import Contract
from holdfast.model.declaration import FIRST_VERSION, Declaration, declare
from holdfast.model.errors import AdmissionError, ConfigError, NoEffect
from holdfast.model.invocation import Invocation
from holdfast.model.signature import Signature, check_shape, read_signature
from holdfast.model.tool import Check
from holdfast.model.vocabulary import Effect

P = ParamSpec("P")
R = TypeVar("R")
NONE: Mapping[str, str] = {}


class FunctionTool(Generic[P, R]):
    """A function and what was declared about it. Calling it calls the function, past every gate."""

    __name__: str

    def __init__(self, function: Callable[P, R], effect: Effect, declared: Declaration) -> None:
        check_shape(function)
        update_wrapper(self, function)
        self.function = function
        self._effect = effect
        self._declared = declared

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    def __get__(self, instance: object, owner: type | None = None) -> "FunctionTool[..., R]":
        """A method is a tool of its object."""
        if instance is None:
            return self
        return FunctionTool(MethodType(self.function, instance), self._effect, self._declared)

    @property
    def name(self) -> str:
        return self._declared.get("name") or self.function.__name__

    @property
    def version(self) -> str:
        return self._declared.get("version") or FIRST_VERSION

    @property
    def checks(self) -> tuple[Check, ...]:
        return tuple(self._declared.get("checks", ()))

    @cached_property
    def is_async(self) -> bool:
        return inspect.iscoroutinefunction(self.function)

    @property
    def invocation_parameter(self) -> str | None:
        return self._signature.invocation

    @cached_property
    def key_parameter(self) -> str | None:
        """The parameter that receives the operation's key, where the contract says there is one."""
        match self._declared.get("idempotency"):
            case {"upstream": "argument", "name": str(name)}:
                return name
            case declared if getattr(declared, "upstream", None) == "argument":
                return getattr(declared, "name", None)
        return None

    @cached_property
    def secret_parameters(self) -> frozenset[str]:
        """Parameters that receive a secret of the gateway's own; no schema shows them."""
        named = set()
        for declared in self._declared.get("credentials", ()):
            said = declared if isinstance(declared, Mapping) else declared.model_dump()
            if said.get("as") == "argument" and isinstance(name := said.get("name"), str):
                named.add(name)
        return frozenset(named)

    @cached_property
    def callback_parameter(self) -> str | None:
        """The parameter that receives the address to call back, where it submits a job."""
        declared = self._declared.get("job")
        said = (
            declared.get("callback") if isinstance(declared, Mapping) else getattr(declared, "callback", None)
        )
        return said if isinstance(said, str) else None

    def build(self, namespace: str) -> Contract:
        """The contract of this function in a namespace; raises AdmissionError with every reason."""
        contract = declare(self.name, namespace, self._effect, self._signature, self._declared)
        if reasons := [*self._key_faults(contract), *self._given_faults(contract)]:
            raise AdmissionError(contract.tool, reasons)
        return contract

    def prepare(
        self,
        arguments: Mapping[str, Any],
        invocation: Invocation | None = None,
        secrets: Mapping[str, str] = NONE,
    ) -> dict[str, Any]:
        """Validated JSON arguments as what the function takes; raises NoEffect where that fails."""
        ready = dict(arguments)
        for name, adapter in self._signature.converters.items():
            if name in ready:
                try:
                    ready[name] = adapter.validate_json(to_json(ready[name]), strict=True)
                except ValidationError as error:
                    raise NoEffect("; ".join(_faults(name, error))) from None
        if self._signature.invocation is not None:
            ready[self._signature.invocation] = invocation
        if self.key_parameter is not None:
            ready[self.key_parameter] = invocation.key if invocation else None
        if secrets:
            ready |= secrets
        return ready

    def render(self, result: Any) -> Any:
        """The function's answer as JSON data; raises ValueError where it has no JSON form.

        Whether it is what was promised is for verification to say, in one place for every upstream.
        """
        signature = self._signature
        if signature.renderer is None and signature.output_schema:
            return result  # plain by its type
        if type(result) in (str, int, float, bool, type(None)):
            return result
        if signature.renderer is None:
            return to_jsonable_python(result)
        return signature.renderer.dump_python(result, mode="json", warnings="none")

    @cached_property
    def _signature(self) -> Signature:
        key = self.key_parameter
        hidden = self.secret_parameters | {
            name for name in (key, self.callback_parameter) if name is not None
        }
        return read_signature(self.function, hidden)

    def _key_faults(self, contract: Contract) -> Iterator[str]:
        """A function honours a key only if it is given one."""
        if not contract.honours_key or contract.idempotency is None:
            return
        match contract.idempotency.upstream:
            case "header":
                yield "a function has no headers; take the key as an argument or an 'Invocation'"
            case "argument":
                if self.key_parameter not in inspect.signature(self.function).parameters:
                    yield f"the function does not take '{self.key_parameter}', the argument of the key"
            case _ if self.invocation_parameter is None:
                yield "the function cannot honour a key it never sees; take a parameter of type 'Invocation'"

    def _given_faults(self, contract: Contract) -> Iterator[str]:
        yield from self._credential_faults(contract)
        name = self.callback_parameter
        if name is not None and name not in inspect.signature(self.function).parameters:
            yield f"the function does not take '{name}', the argument of the address to call back"

    def _credential_faults(self, contract: Contract) -> Iterator[str]:
        """A function gets a secret as an argument, and must have a place for it."""
        parameters = inspect.signature(self.function).parameters
        for credential in contract.security.credentials:
            if credential.place != "argument":
                yield f"a function has no {credential.place}; take the secret with 'as: argument'"
            elif credential.name not in parameters:
                yield f"the function does not take '{credential.name}', the argument of a secret"
            elif credential.name in (self.key_parameter, self.invocation_parameter):
                yield f"'{credential.name}' is filled by the gateway already; name another one for the secret"
            elif parameters[credential.name].annotation not in (str, "str", inspect.Parameter.empty):
                yield f"parameter '{credential.name}' receives a secret; write '{credential.name}: str'"


def tool(
    *, effect: Effect, **declared: Unpack[Declaration]
) -> Callable[[Callable[P, R]], FunctionTool[P, R]]:
    """Make a function a tool. Keywords are the parts of a contract; see the contract reference."""

    def decorate(function: Callable[P, R]) -> FunctionTool[P, R]:
        return FunctionTool(function, effect, declared)

    return decorate


def toolset(source: object) -> list[FunctionTool[..., Any]]:
    """The tools of a module (its own, or those `__all__` names), an object, a dict or a sequence."""
    found = list(_collect(source))
    if not found:
        raise ConfigError(f"{source!r} holds no tools; decorate its functions with '@tool(effect=...)'")
    return found


def _collect(source: object) -> Iterator[FunctionTool[..., Any]]:
    match source:
        case FunctionTool():
            yield source
        case Mapping():
            for value in source.values():
                yield from _collect(value)
        case list() | tuple():
            for value in source:
                yield from _collect(value)
        case type():
            raise ConfigError(f"{source.__name__!r} is a class; pass an instance of it")
        case ModuleType():
            yield from _of_module(source)
        case _:
            kinds = reversed(type(source).__mro__)
            names = dict.fromkeys(name for kind in kinds for name in vars(kind))
            for name in names:
                if isinstance(inspect.getattr_static(source, name, None), FunctionTool):
                    yield getattr(source, name)


def _of_module(module: ModuleType) -> Iterator[FunctionTool[..., Any]]:
    """A tool that was only imported is not offered twice."""
    named = getattr(module, "__all__", None)
    for name, value in vars(module).items():
        if isinstance(value, FunctionTool):
            own = value.function.__module__ == module.__name__
            if name in named if named is not None else own:
                yield value


def _faults(name: str, error: ValidationError) -> Iterator[str]:
    for fault in error.errors(include_url=False, include_input=False, include_context=False):
        where = "/".join(("", name, *map(str, fault["loc"])))
        yield f"argument '{where}': {fault['msg'][:1].lower()}{fault['msg'][1:]}"
