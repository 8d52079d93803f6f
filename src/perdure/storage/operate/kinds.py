"""Stored declarations of kinds, readable without the app's code: words for states, retention, limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from perdure.domain.declared_limits import DeclaredLimit
from perdure.domain.jobs.states import JobState
from perdure.storage.records import Keep


class KindRecord(Struct, frozen=True, kw_only=True):
    """What an app declares about one kind; `keep` None: the pruning worker's settings."""

    name: str
    words: Mapping[str, str] = {}  # by state
    keep: Keep | None = None
    limits: tuple[DeclaredLimit, ...] = ()

    @property
    def says_nothing(self) -> bool:
        """Whether there is nothing to store."""
        return not self.words and self.keep is None and not self.limits

    def states_called(self, word: str) -> frozenset[JobState]:
        """The states for which this is the app's word."""
        return frozenset(JobState(state) for state, own in self.words.items() if own == word and state in set(JobState))


class KindStore(Protocol):
    """What apps have declared about their kinds."""

    async def declare_kinds(self, kinds: Sequence[KindRecord]) -> None:
        """Store the records of these kinds, replacing earlier ones; an empty record is deleted.

        Nothing is written if nothing has changed. Kinds that are not named do not change.
        """

    async def kinds(self) -> list[KindRecord]:
        """All kinds that have a record, by name."""
