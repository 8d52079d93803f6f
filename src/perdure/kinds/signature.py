"""A handler's parameters as a schema: enqueue checks arguments by the same rule that later reads them.

Arguments are stored as a JSON object by parameter name, so that operators can read them, and a new parameter with a
default can be added while old jobs wait. Omitted arguments are not stored: the handler's default applies when it runs.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Final

import msgspec

from perdure.errors import PayloadError, SettingsError
from perdure.kinds.encoding import document_of, from_plain
from perdure.policy.secrets.secret import Secret, is_secret_type

_REFUSED: Final = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}


class Signature:
    """The parameters of one handler, without its context. `but` is a parameter to leave out."""

    def __init__(self, handler: Callable[..., Any], context_type: type, but: str | None = None) -> None:
        self._handler = handler
        self._context_type = context_type
        parameters = list(inspect.signature(handler).parameters.values())
        self.takes_context = bool(parameters) and _is_context(parameters[0], context_type)
        own = parameters[1:] if self.takes_context else parameters
        self.parameters: Final = [parameter for parameter in own if parameter.name != but]
        self.names: Final = tuple(parameter.name for parameter in self.parameters)
        for parameter in self.parameters:
            if parameter.kind in _REFUSED:
                raise SettingsError(
                    f"parameter {_REFUSED[parameter.kind]}{parameter.name} of {handler.__qualname__}",
                    "cannot be checked at enqueue: name each parameter, or take one dict",
                )
        self._known = frozenset(self.names)
        self._positional = tuple(p.name for p in self.parameters if p.kind is not inspect.Parameter.KEYWORD_ONLY)
        self._keyword_only = self.names[len(self._positional) :]
        self._plain = len(self.names) if len(self._positional) == len(self.names) else -1
        self._required = frozenset(p.name for p in self.parameters if p.default is inspect.Parameter.empty)

    def without(self, name: str) -> Signature:
        """The signature without one parameter, whose argument comes later."""
        return Signature(self._handler, self._context_type, name)

    @cached_property
    def secrets(self) -> frozenset[str]:
        """The parameters that are annotated as `Secret`."""
        hints = self._hints
        return frozenset(name for name in self.names if is_secret_type(hints.get(name)))

    @cached_property
    def _hints(self) -> dict[str, Any]:
        try:
            return typing.get_type_hints(self._handler, include_extras=True)
        except NameError as error:
            raise SettingsError(
                f"annotations of {self._handler.__qualname__}", f"cannot be resolved: {error}"
            ) from error

    @cached_property
    def _decoder(self) -> msgspec.json.Decoder[Any]:
        """Reads and checks a stored document. Made on first use, because annotations may name later definitions."""
        hints = self._hints
        fields: list[Any] = []
        for parameter in self.parameters:
            hint = hints.get(parameter.name, Any)
            if parameter.default is inspect.Parameter.empty:
                fields.append((parameter.name, hint))
            else:
                fields.append((parameter.name, hint, msgspec.field(default_factory=_constant(parameter.default))))
        shape = msgspec.defstruct(
            self._handler.__name__, fields, kw_only=True, forbid_unknown_fields=True, frozen=True, gc=False
        )
        return msgspec.json.Decoder(shape, dec_hook=from_plain)

    def bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments by name; a wrong number or name raises PayloadError, as the call itself would."""
        if not kwargs and len(args) == self._plain:
            return dict(zip(self.names, args, strict=True))
        if len(args) > len(self._positional):
            raise PayloadError(
                "arguments", f"of {self._handler.__qualname__}: takes {len(self._positional)}, got {len(args)}"
            )
        bound = dict(zip(self._positional, args, strict=False))
        for name, value in kwargs.items():
            if name not in self._known:
                raise PayloadError(
                    f"argument {name}", f"is not one of {self._handler.__qualname__}({', '.join(self.names)})"
                )
            if name in bound:
                raise PayloadError(f"argument {name}", f"of {self._handler.__qualname__} is given twice")
            bound[name] = value
        if len(bound) < len(self._known) and (missing := self._required - bound.keys()):
            raise PayloadError(f"argument {min(missing)}", f"of {self._handler.__qualname__} is missing")
        return bound

    def encode(self, bound: dict[str, Any], limit: int) -> str:
        """The JSON document of these arguments, checked against the annotations and the size limit."""
        if not bound:
            return "{}"
        if self.secrets:  # a plain value is marked, so that it is known for a secret where it is stored
            bound = {n: Secret(v) if n in self.secrets and not isinstance(v, Secret) else v for n, v in bound.items()}
        try:
            document = document_of(bound)
        except (TypeError, ValueError, NotImplementedError, OverflowError, RecursionError) as error:
            raise PayloadError(*self._culprit(bound, error)) from error
        if len(document) > limit:
            name, size = max(((n, len(document_of(v))) for n, v in bound.items()), key=lambda item: item[1])
            raise PayloadError(
                f"argument {name}",
                f"takes {size} bytes, all arguments together may take {limit}: store the data elsewhere, pass its key",
            )
        decoder = self._decoder
        try:
            decoder.decode(document)
        except (msgspec.ValidationError, ValueError, TypeError, NotImplementedError) as error:
            raise PayloadError(*_place(error)) from error
        return document.decode()

    def values(self, document: str) -> tuple[Any, ...]:
        """The arguments of a stored document in the order of `names`; raises PayloadError if they do not fit."""
        try:
            return msgspec.structs.astuple(self._decoder.decode(document))
        except (msgspec.DecodeError, ValueError, TypeError, NotImplementedError) as error:
            raise PayloadError(*_place(error)) from error

    def decode(self, document: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The positional and keyword arguments of a stored document; raises PayloadError if they do not fit."""
        values = self.values(document)
        if not self._keyword_only:
            return values, {}
        first = len(self._positional)
        return values[:first], dict(zip(self._keyword_only, values[first:], strict=True))

    def with_defaults(self, bound: Mapping[str, Any]) -> dict[str, Any]:
        """All arguments of a call, with defaults filled in: the input of unique keys."""
        return {p.name: bound.get(p.name, p.default) for p in self.parameters}

    def decode_result(self, document: str) -> Any:
        """A stored result, converted to the handler's declared return type."""
        return self._result_decoder.decode(document)

    @cached_property
    def _result_decoder(self) -> msgspec.json.Decoder[Any]:
        hint = typing.get_type_hints(self._handler, include_extras=True).get("return", Any)
        return msgspec.json.Decoder(hint, dec_hook=from_plain)

    @staticmethod
    def _culprit(bound: dict[str, Any], error: Exception) -> tuple[str, str]:
        for name, value in bound.items():
            try:
                document_of(value)
            except (TypeError, ValueError, NotImplementedError, OverflowError, RecursionError) as own:
                return f"argument {name}", f"cannot be stored: {own}"
        return "arguments", f"cannot be stored: {error}"


def _constant(value: Any) -> Callable[[], Any]:
    return lambda: value


def _is_context(parameter: inspect.Parameter, context_type: type) -> bool:
    annotation = parameter.annotation
    named = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    names = {context_type.__name__, f"Sync{context_type.__name__}"}
    return annotation is context_type or named.rpartition(".")[2] in names or parameter.name == "ctx"


def _place(error: Exception) -> tuple[str, str]:
    """The argument that a msgspec message names (``… - at `$.n` ``), and the message without that path."""
    text, _, path = str(error).partition(" - at `$")
    if text.startswith("Object contains unknown field"):
        return f"argument {text.split('`')[1]}", "is not a parameter of the handler"
    if text.startswith("Object missing required field"):
        return f"argument {text.split('`')[1]}", "is missing"
    name = path.strip("`").lstrip(".")
    said = text if text[:2].isupper() else text[:1].lower() + text[1:]  # "JSON is malformed" stays as it is
    return (f"argument {name}" if name else "arguments"), said
