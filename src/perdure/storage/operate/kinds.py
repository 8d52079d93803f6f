"""What is known of kinds where none of the app's code is: their words for states, and how long their jobs are kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from perdure.domain.jobs.states import JobState
from perdure.storage.records import Keep


class KindRecord(Struct, frozen=True, kw_only=True):
    """What an app declares of one kind; `keep` None: as the worker that prunes says."""

    name: str
    words: Mapping[str, str] = {}  # by state
    keep: Keep | None = None

    @property
    def says_nothing(self) -> bool:
        """Whether there is nothing to be kept of it."""
        return not self.words and self.keep is None

    def states_called(self, word: str) -> frozenset[JobState]:
        """The states for which this is the app's word."""
        return frozenset(JobState(state) for state, own in self.words.items() if own == word and state in set(JobState))


class KindStore(Protocol):
    """What apps have declared of their kinds."""

    async def declare_kinds(self, kinds: Sequence[KindRecord]) -> None:
        """Keep what is said of these kinds in place of what was; one that says nothing is forgotten.

        Nothing is written if nothing has changed. Kinds that are not named stay as they are.
        """

    async def kinds(self) -> list[KindRecord]:
        """All kinds of which something is kept, by name."""
