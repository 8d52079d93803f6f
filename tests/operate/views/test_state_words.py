"""States in the words of an application."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import pytest

from perdure.domain.jobs.states import JobState
from perdure.errors import ArgumentError
from perdure.operate.views.state_words import states_meant
from perdure.storage.operate.kinds import KindRecord
from perdure.storage.port import Store
from perdure.storage.records import JobFilter


class Kinds:
    """A store that knows these kinds."""

    def __init__(self, **words: Mapping[str, str]) -> None:
        self._records = [KindRecord(name=name, words=own) for name, own in words.items()]

    async def kinds(self) -> list[KindRecord]:
        return self._records


TWO = Kinds(mail={JobState.SUCCEEDED: "sent", JobState.DEAD: "lost"}, pdf={JobState.SUCCEEDED: "made"})
SAME = Kinds(mail={JobState.SUCCEEDED: "sent"}, fax={JobState.SUCCEEDED: "sent"})


async def meant(words: str | list[str], kind: str | None = None, kinds: Kinds = TWO) -> JobFilter:
    return await states_meant(cast("Store", kinds), words, kind)


async def test_a_word_of_one_kind_means_its_state_and_that_kind() -> None:
    assert await meant("sent") == JobFilter(states=frozenset({JobState.SUCCEEDED}), kind="mail")
    both = await meant(["sent", "lost", "sent"])
    assert both == JobFilter(states=frozenset({JobState.SUCCEEDED, JobState.DEAD}), kind="mail")


async def test_our_own_words_mean_every_kind() -> None:
    assert await meant(["dead", "ready"]) == JobFilter(states=frozenset({JobState.DEAD, JobState.READY}))


async def test_a_word_of_a_kind_beside_one_of_ours_needs_the_kind() -> None:
    with pytest.raises(ArgumentError, match="'sent' is a word of kind 'mail' alone: give the kind too"):
        await meant(["dead", "sent"])
    assert (await meant(["dead", "sent"], "mail")).states == frozenset({JobState.DEAD, JobState.SUCCEEDED})


async def test_words_of_two_kinds_are_refused() -> None:
    with pytest.raises(ArgumentError, match="'made' is not a state of kind 'mail'"):
        await meant(["sent", "made"])
    with pytest.raises(ArgumentError, match="'sent' is a word of several kinds, mail, fax: give one"):
        await meant("sent", kinds=SAME)
    assert (await meant("sent", "fax", SAME)).kind == "fax"


async def test_an_unknown_word_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ArgumentError, match=r"'snet' is not a state; states are .*; words of apps are lost, made, "):
        await meant("snet")
