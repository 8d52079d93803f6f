"""Encrypts stored addresses with a key from the environment.

Fernet of the package cryptography: AES in CBC mode with an HMAC, one text, no options to get wrong
(docs/decisions/0048-alert-addresses-are-sealed-with-fernet.md). The variable may list several keys: the first one
seals, all of them open, so that a key can be replaced without a gap.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

from perdure.domain.alerts.channel import ENV, SEALED
from perdure.errors import ArgumentError, SettingsError

if TYPE_CHECKING:
    from cryptography.fernet import MultiFernet

KEY_VARIABLE: Final = "PERDURE_ALERTS_KEY"


def new_key() -> str:
    """A fresh key for the environment."""
    return str(_fernet().Fernet.generate_key().decode())


def seal(field: str, text: str) -> str:
    """Encrypt a text; raises ArgumentError if there is no key."""
    if not os.environ.get(KEY_VARIABLE):
        raise ArgumentError(
            field,
            f"holds a secret: keep it in an environment variable and write {ENV}NAME here, or set {KEY_VARIABLE} so"
            " that it is stored encrypted (`perdure alerts key` makes one)",
        )
    return SEALED + _keys().encrypt(text.encode()).decode()


def unsealed(field: str, kept: str) -> str:
    """The plain text of a stored value: decrypted, read from the environment, or unchanged."""
    if kept.startswith(ENV):
        name = kept.removeprefix(ENV)
        value = os.environ.get(name)
        if not value:
            raise SettingsError(field, f"is to be read from the environment variable {name}, which is not set here")
        return value
    if not kept.startswith(SEALED):
        return kept
    if not os.environ.get(KEY_VARIABLE):
        raise SettingsError(field, f"is stored encrypted, and {KEY_VARIABLE} is not set here")
    from cryptography.fernet import InvalidToken  # noqa: PLC0415 - an extra

    try:
        return _keys().decrypt(kept.removeprefix(SEALED).encode()).decode()
    except InvalidToken:
        raise SettingsError(
            field, f"was encrypted with another key than {KEY_VARIABLE} holds: add that key, or save the channel again"
        ) from None


def _keys() -> MultiFernet:
    module = _fernet()
    texts = [text.strip() for text in os.environ.get(KEY_VARIABLE, "").split(",") if text.strip()]
    try:
        keys: MultiFernet = module.MultiFernet([module.Fernet(text) for text in texts])
    except (ValueError, TypeError):
        raise SettingsError(
            KEY_VARIABLE, "is not a key: it must be 32 bytes in URL-safe base64; `perdure alerts key` makes one"
        ) from None
    return keys


def _fernet() -> Any:
    try:
        from cryptography import fernet  # noqa: PLC0415 - an extra
    except ModuleNotFoundError:
        raise SettingsError(
            KEY_VARIABLE, "needs cryptography, which is not installed: pip install 'perdure[alerts]'"
        ) from None
    return fernet
