"""Free capacity is shared by weight, and never wasted on an empty queue."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from perdure.storage.records import Wanted
from perdure.worker.claiming.slots import Slots
from perdure.worker.settings import Queue


def as_dict(wanted: list[Wanted]) -> dict[str, int]:
    return {want.queue: want.limit for want in wanted}


def test_shares_follow_the_weights() -> None:
    slots = Slots([Queue("a", weight=3), Queue("b")], concurrency=100, batch=500)
    assert as_dict(slots.wanted()) == {"a": 75, "b": 25}


def test_what_an_empty_queue_leaves_goes_to_the_others_at_once() -> None:
    slots = Slots([Queue("a", weight=3), Queue("b")], concurrency=100, batch=500)
    wanted = slots.wanted()
    slots.note_taken(wanted, Counter(b=25))
    for _ in range(25):
        slots.take("b")
    assert as_dict(slots.wanted()) == {"b": 75}


def test_a_queue_at_its_own_limit_is_not_asked() -> None:
    slots = Slots([Queue("a", concurrency=2), Queue("b")], concurrency=10, batch=500)
    slots.take("a")
    slots.take("a")
    assert as_dict(slots.wanted()) == {"b": 8}
    assert slots.is_limited()
    slots.release("a")
    assert as_dict(slots.wanted())["a"] == 1
    assert not slots.is_limited()


def test_a_batch_is_never_larger_than_asked_for() -> None:
    assert as_dict(Slots([Queue("a")], concurrency=2000, batch=500).wanted()) == {"a": 500}


def test_no_capacity_asks_for_nothing() -> None:
    slots = Slots([Queue("a")], concurrency=1, batch=500)
    slots.take("a")
    assert slots.wanted() == []


def test_a_reserved_queue_has_slots_beside_those_of_the_worker() -> None:
    slots = Slots([Queue("a"), Queue("urgent", concurrency=2, reserved=True)], concurrency=3, batch=500)
    slots.take("a", 3)
    assert as_dict(slots.wanted()) == {"urgent": 2}, "all others are taken"
    slots.take("urgent", 2)
    assert slots.wanted() == []
    slots.release("a")
    assert as_dict(slots.wanted()) == {"a": 1}, "what runs there takes none of the worker's own slots"


@given(
    weights=st.lists(st.integers(1, 9), min_size=1, max_size=6),
    concurrency=st.integers(1, 300),
    running=st.integers(0, 300),
)
def test_never_asks_for_more_than_is_free(weights: list[int], concurrency: int, running: int) -> None:
    queues = [Queue(str(number), weight) for number, weight in enumerate(weights)]
    slots = Slots(queues, concurrency, batch=500)
    for _ in range(min(running, concurrency)):
        slots.take("0")
    asked = sum(want.limit for want in slots.wanted())
    assert asked == max(concurrency - running, 0)
