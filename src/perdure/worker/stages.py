"""The stages that a claim passes between the fetcher and its handler.

    closing? → quarantine → pauses → gates → run

A stage lets claims through to the next one, at once or later, or gives them back without using an attempt. Before each
stage comes the same check: if the worker is closing, it starts nothing more, and gives back the claims that reach the
stage. `wiring` has the list.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from msgspec import Struct

from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.transition import Transition
from perdure.policy.decide import give_back

QUARANTINE: Final = "quarantine"
PAUSES: Final = "pauses"
GATES: Final = "gates"
RUN: Final = "run"

Start = Callable[[Sequence[Claim]], None]


class Stage(Struct, frozen=True, eq=False):
    """One stage. `start` takes claims; `give_back` makes the move of one that reaches it while the worker closes."""

    name: str
    start: Start
    give_back: Callable[[Claim], Transition] = give_back


class ClaimStages:
    """Passes claims from one stage to the next."""

    def __init__(self, acknowledge: Callable[[Transition], None]) -> None:
        self._acknowledge = acknowledge
        self._stages: tuple[Stage, ...] = ()
        self._places: dict[str, int] = {}
        self.is_closing = False

    def define(self, *stages: Stage) -> None:
        """Set the stages, in order."""
        self._stages = stages
        self._places = {stage.name: place for place, stage in enumerate(stages)}

    def start(self, claims: Sequence[Claim]) -> None:
        """Pass claims to the first stage."""
        self._enter(self._stages[0], claims)

    def into(self, name: str) -> Start:
        """The entrance of a stage, for claims that need no earlier stage."""
        return lambda claims: self._enter(self._stages[self._places[name]], claims)

    def after(self, name: str) -> Start:
        """The exit of a stage, for claims that it lets through."""
        return partial(self._go_on, name)

    def give_back(self, claims: Sequence[Claim]) -> None:
        """Give claims back that have reached no stage."""
        for claim in claims:
            self._acknowledge(give_back(claim))

    def _go_on(self, name: str, claims: Sequence[Claim]) -> None:
        self._enter(self._stages[self._places[name] + 1], claims)

    def _enter(self, stage: Stage, claims: Sequence[Claim]) -> None:
        if self.is_closing:
            for claim in claims:
                self._acknowledge(stage.give_back(claim))
        else:
            stage.start(claims)
