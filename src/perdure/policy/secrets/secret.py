"""A value that is handed to a handler and shown nowhere."""

from __future__ import annotations

import hmac
from typing import Any, Final, Generic, TypeVar, get_args, get_origin

import msgspec

T = TypeVar("T")

TAG: Final = "$secret"
"""How a secret is marked where it is stored, so that tools without the app's code know it."""

MASK: Final = "***"


class Secret(Generic[T]):
    """A value that only code sees: `reveal()` gives it, and every text of it is ``***``.

    Annotate an argument, a field or a result with it, as in ``async def charge(card: Secret[str])``. It is stored as it
    is, so that the handler gets it; views, logs and errors do not show it.
    """

    __slots__ = ("_value",)

    def __init__(self, value: T) -> None:
        self._value = value

    def reveal(self) -> T:
        """The value."""
        return self._value

    def __repr__(self) -> str:
        return f"Secret({MASK!r})"

    def __str__(self) -> str:
        return MASK

    def __format__(self, spec: str) -> str:
        return format(MASK, spec)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        mine, theirs = self._value, other._value
        if isinstance(mine, str) and isinstance(theirs, str):
            return hmac.compare_digest(mine.encode("utf-8", "replace"), theirs.encode("utf-8", "replace"))
        return bool(mine == theirs)

    def __hash__(self) -> int:
        return hash((Secret, self._value))


def is_secret_type(hint: Any) -> bool:
    """Whether an annotation is `Secret`, `Secret[...]`, or one of them among others."""
    return hint is Secret or get_origin(hint) is Secret or any(is_secret_type(part) for part in get_args(hint))


def tagged(secret: Secret[Any]) -> dict[str, Any]:
    """A secret as it is stored."""
    return {TAG: secret.reveal()}


def from_tagged(hint: Any, value: Any) -> Secret[Any]:
    """A secret from what is stored, or from a plain value; raises if it does not fit the annotation."""
    inner = value[TAG] if isinstance(value, dict) and value.keys() == {TAG} else value
    wanted = get_args(hint)
    try:
        return Secret(msgspec.convert(inner, wanted[0]) if wanted else inner)
    except msgspec.ValidationError as error:
        reason = str(error).partition(" - at ")[0]
        raise ValueError(f"{reason} in a Secret" if "`" in reason else "the Secret has a wrong type") from None
