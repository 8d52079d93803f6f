"""States in the words of an application: `sent` if a kind calls its succeeded jobs that."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from perdure.domain.jobs.states import JobState
from perdure.errors import ArgumentError
from perdure.operate.wording import listed
from perdure.storage.operate.kinds import KindRecord
from perdure.storage.port import Store
from perdure.storage.records import JobFilter

_OURS: Final = frozenset(state.value for state in JobState)


async def states_meant(store: Store, words: str | Iterable[str], kind: str | None) -> JobFilter:
    """The filter for these states, in perdure's words or in those of a kind; refused if ambiguous."""
    given = [words] if isinstance(words, str) else list(dict.fromkeys(words))
    states = {JobState(word) for word in given if word in _OURS}
    foreign = [word for word in given if word not in _OURS]
    if foreign:
        records = await store.kinds()
        for word in foreign:
            record = _user_of(word, kind, records)
            if kind is None and states:
                raise ArgumentError("state", f"{word!r} is a word of kind {record.name!r} alone: give the kind too")
            kind = record.name
        states |= {state for word in foreign for state in _user_of(word, kind, records).states_called(word)}
    return JobFilter(states=frozenset(states) or None, kind=kind)


def _user_of(word: str, kind: str | None, records: list[KindRecord]) -> KindRecord:
    users = [record for record in records if kind in {None, record.name} and record.states_called(word)]
    if not users:
        of = "" if kind is None else f" of kind {kind!r}"
        own = sorted({own for record in records if kind in {None, record.name} for own in record.words.values()})
        also = f"; words of apps are {listed(own)}" if own else ""
        raise ArgumentError("state", f"{word!r} is not a state{of}; states are {', '.join(JobState)}{also}")
    if len(users) > 1:
        raise ArgumentError("state", f"{word!r} is a word of several kinds, {listed(u.name for u in users)}: give one")
    return users[0]
