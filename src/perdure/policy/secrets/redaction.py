"""Secrets are kept out of what people read (docs/decisions/0036-what-redaction-means.md).

What code reads back (arguments, metadata, results, steps) is stored as it is and masked wherever it is shown. What only
people read (log lines, errors, tracebacks, notes) is masked before it is written. A value is secret if it is a
`Secret`, if it stands under a name such as `password`, or if it is the password of a URL.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final
from urllib.parse import quote

import msgspec

from perdure.domain.jobs.outcome import Failure
from perdure.policy.secrets.passwords import without_address_password
from perdure.policy.secrets.secret import MASK, TAG, Secret

VARIABLE: Final = "PERDURE_REDACT"
"""The environment variable with further names, as in ``iban,ssn``."""

NAMES: Final = (
    *("password", "passwd", "passphrase", "pwd", "secret", "token", "api_key", "apikey", "access_key"),
    *("private_key", "authorization", "cookie", "credential", "credentials"),
)
_STEMS: Final = (
    "passw",
    "passph",
    "pwd",
    "secret",
    "token",
    "key",
    "authoriz",
    "cookie",
    "credential",
    "://",
    "bearer ",
)
_SHORTEST_SECRET_CHARACTERS: Final = 4  # a shorter secret is a piece of ordinary words
_SHORTEST_BY_NAME_CHARACTERS: Final = 8
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_IN_URL: Final = re.compile(r"://[^/?#:@\s]*:([^/?#@\s]+)@")
_OWN_TOKEN: Final = re.compile(r"\bpd[rsm]_[A-Za-z0-9_-]{20,}")
_JSON_TEXT: Final = r'"(?:[^"\\]|\\.)*"'
_JSON_OBJECT: Final = r"\{(?:[^{}]|\{[^{}]*\})*\}"
_JSON_LIST: Final = r"\[(?:[^\]\[]|\[[^\]\[]*\])*\]"
_JSON_WORD: Final = r'[^\]\[{}",\s]+'
_URL_PATTERN: Final = r'(://[^/?#:@\s"]*:)[^/?#@\s"]+@'
_SCHEME: Final = re.compile(r"\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}", re.IGNORECASE)


def is_secret_name(name: object) -> bool:
    """Whether a value of this name is masked: `password`, `db_password`, `X-Api-Key`, `accessToken`."""
    if not isinstance(name, str):
        return False
    plain = _HUMP.sub("_", name).replace("-", "_").lower()
    return any(plain == known or plain.endswith(f"_{known}") for known in _names(os.environ.get(VARIABLE, "")))


def redact_document(document: str | None) -> str | None:
    """A stored JSON text as it may be shown; the same text if there is nothing to mask."""
    if document is None or not _is_suspect(document):
        return document
    try:
        value = msgspec.json.decode(document)
    except (msgspec.DecodeError, RecursionError):
        return redact_text(document)
    masked = redact_value(value)
    return document if masked == value else msgspec.json.encode(masked).decode()


def redact_value(value: Any) -> Any:
    """Plain data as it may be shown."""
    if isinstance(value, Secret):
        return MASK
    if isinstance(value, Mapping):
        if TAG in value:
            return MASK
        return {name: _masked(each) if is_secret_name(name) else redact_value(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [redact_value(each) for each in value]
    return redact_text(value) if isinstance(value, str) else value


def redact_text(text: str, known: Iterable[str] = ()) -> str:
    """A text as it may be shown: without these secrets, and without what stands behind a name of a secret."""
    for secret in known:
        text = text.replace(secret, MASK)
    if not _is_suspect(text):
        return text
    text = _OWN_TOKEN.sub(MASK, _SCHEME.sub(rf"\1 {MASK}", without_address_password(text)))
    for pattern in _patterns(os.environ.get(VARIABLE, "")):
        text = pattern.sub(rf"\1{MASK}", text)
    return text


def masks_of_json() -> tuple[tuple[str, str], ...]:
    """Patterns, in any case, of secrets in a JSON text, and what stands in their place: `"password": "x"`, URLs.

    They mean the same to Python and to PostgreSQL, for searches that look at texts. Values are found two levels deep.
    """
    return (_json_pattern(os.environ.get(VARIABLE, "")), rf'\1"{MASK}"'), (_URL_PATTERN, rf"\1{MASK}@")


def redact_failure(failure: Failure, known: Iterable[str] = ()) -> Failure:
    """An error as it may be written."""
    known = tuple(known)
    traceback = None if failure.traceback is None else redact_text(failure.traceback, known)
    return Failure(failure.error_type, redact_text(failure.message, known), traceback)


def known_secrets(*documents: str | None) -> tuple[str, ...]:
    """The secrets in stored JSON texts, and how they look in other texts; the longest first."""
    found: set[str] = set()
    for document in documents:
        if document is not None and _is_suspect(document):
            try:
                found.update(_secrets_in(msgspec.json.decode(document)))
            except (msgspec.DecodeError, RecursionError):
                continue
    looks = {look for text in found for look in (text, quote(text), quote(text, safe=""), repr(text)[1:-1])}
    escaped = {msgspec.json.encode(text).decode()[1:-1] for text in found}
    return tuple(sorted(looks | escaped, key=len, reverse=True))


def _secrets_in(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, each in value.items():
            if name == TAG:
                yield from _texts(each, _SHORTEST_SECRET_CHARACTERS)
            elif is_secret_name(name):
                yield from _texts(each, _SHORTEST_BY_NAME_CHARACTERS)
            else:
                yield from _secrets_in(each)
    elif isinstance(value, list):
        for each in value:
            yield from _secrets_in(each)
    elif isinstance(value, str):
        yield from (word for word in _IN_URL.findall(value) if len(word) >= _SHORTEST_BY_NAME_CHARACTERS)


def _texts(value: Any, shortest: int) -> Iterator[str]:
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from _texts(each, shortest)
    elif value is not None and not isinstance(value, bool) and len(str(value)) >= shortest:
        yield str(value)


def _masked(value: Any) -> Any:
    return value if value is None or isinstance(value, bool) else MASK


def _is_suspect(text: str) -> bool:
    """A quick look, so that texts without a secret cost next to nothing."""
    lowered = text.lower()
    return any(stem in lowered for stem in _stems(os.environ.get(VARIABLE, "")))


@lru_cache(maxsize=4)
def _names(further: str) -> tuple[str, ...]:
    return (*NAMES, *(name.strip().lower() for name in further.split(",") if name.strip()))


@lru_cache(maxsize=4)
def _stems(further: str) -> tuple[str, ...]:
    return (*_STEMS, "pdr_", *_names(further)[len(NAMES) :])


@lru_cache(maxsize=4)
def _json_pattern(further: str) -> str:
    names = "|".join(re.escape(name).replace("_", "[_-]?") for name in _names(further))
    values = (_JSON_TEXT, _JSON_OBJECT, _JSON_LIST, _JSON_WORD)
    return rf'("(?:[^"\\]|\\.)*(?:{names})"\s*:\s*)(?:{"|".join(values)})'


@lru_cache(maxsize=4)
def _patterns(further: str) -> tuple[re.Pattern[str], ...]:
    """`name=value` and `"name": value`; `name: value` only for names that are no words of error messages."""
    names = "|".join(re.escape(name).replace("_", "[_-]?") for name in _names(further))
    value = r"(?!\*\*\*)(?:\"[^\"\n]*\"|'[^'\n]*'|[^\s\"'&,;)}\]]+)"
    headers = r"(?:set-)?cookie|(?:proxy-)?authorization"
    return (
        re.compile(rf"((?:{names})\s*=\s*){value}", re.IGNORECASE),
        re.compile(rf"((?:{names})[\"']\s*[:,]\s*){value}", re.IGNORECASE),
        re.compile(rf"(\b(?:{headers})\s*:\s*)[^\n\"']+", re.IGNORECASE),
        re.compile(
            rf"(\b(?:password|passphrase|api[_-]?key|access[_-]?token|client[_-]?secret)\s*:\s*){value}", re.IGNORECASE
        ),
    )
