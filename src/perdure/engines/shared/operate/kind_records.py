"""Kinds as text: how both engines store their records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from perdure.domain.declared_limits import DeclaredLimit
from perdure.storage.operate.kinds import KindRecord
from perdure.storage.records import Keep

_WORDS: Final = msgspec.json.Decoder(dict[str, str])
_KEEP: Final = msgspec.json.Decoder(Keep)
_LIMITS: Final = msgspec.json.Decoder(tuple[DeclaredLimit, ...])


def words_text(record: KindRecord) -> str | None:
    """Its words for states, as JSON."""
    return msgspec.json.encode(dict(record.words)).decode() if record.words else None


def keep_text(record: KindRecord) -> str | None:
    """How long its finished jobs are kept, as JSON."""
    return None if record.keep is None else msgspec.json.encode(record.keep).decode()


def limits_text(record: KindRecord) -> str | None:
    """The limits that it declares, as JSON."""
    return msgspec.json.encode(record.limits).decode() if record.limits else None


def record_of(name: str, words: str | None, keep: str | None, limits: str | None) -> KindRecord:
    """A kind from its columns. An unreadable column counts as empty: its jobs then have the default retention."""
    try:
        known = {} if words is None else _WORDS.decode(words)
    except msgspec.MsgspecError:
        known = {}
    try:
        kept = None if keep is None else _KEEP.decode(keep)
    except msgspec.MsgspecError:
        kept = None
    try:
        declared = () if limits is None else _LIMITS.decode(limits)
    except msgspec.MsgspecError:
        declared = ()
    return KindRecord(name=name, words=known, keep=kept, limits=declared)


def changed_records(wanted: Iterable[KindRecord], known: Mapping[str, KindRecord]) -> list[KindRecord]:
    """The records that differ from the stored ones."""
    return [record for record in wanted if known.get(record.name, KindRecord(name=record.name)) != record]
