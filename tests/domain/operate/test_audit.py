"""Who is in the audit trail, and which moves of the engine are."""

from __future__ import annotations

import pytest
from tests.support.builders.jobs import A_FAILURE, HOUR
from tests.support.builders.views import a_claim

from perdure.domain.jobs import transition
from perdure.domain.jobs.states import Reason
from perdure.domain.jobs.transition import Transition
from perdure.domain.operate.audit import ActorType, Audited, actor_type, noted_as

CLAIM = a_claim()


@pytest.mark.parametrize(
    ("actor", "kind"),
    [
        ("system", ActorType.SYSTEM),
        ("schedule nightly", ActorType.SYSTEM),
        ("app", ActorType.APPLICATION),
        ("app:shop", ActorType.APPLICATION),
        ("apple", ActorType.PERSON),
        ("scheduler", ActorType.PERSON),
        ("ada", ActorType.PERSON),
    ],
)
def test_the_name_of_an_actor_shows_its_type(actor: str, kind: ActorType) -> None:
    assert actor_type(actor) is kind


@pytest.mark.parametrize(
    ("move", "noted"),
    [
        (transition.retrying(CLAIM, Reason.FAILED, A_FAILURE, HOUR), Audited.RETRY),
        (transition.retrying(CLAIM, Reason.TIMED_OUT, A_FAILURE, HOUR), Audited.RETRY),
        (transition.died(CLAIM, Reason.EXHAUSTED, A_FAILURE), Audited.DEATH),
        (transition.cancelled(CLAIM, "not wanted"), Audited.CANCEL),
        (transition.succeeded(CLAIM, "1", ()), None),
        (transition.waiting(CLAIM, Reason.SNOOZED, HOUR), None),
        (transition.released(CLAIM), None),
    ],
    ids=lambda value: "" if isinstance(value, Transition) else str(value),
)
def test_a_move_is_noted_only_where_the_setting_asks_for_it(move: Transition, noted: Audited | None) -> None:
    assert noted_as(move, set(Audited)) is noted
    assert noted_as(move, ()) is None
