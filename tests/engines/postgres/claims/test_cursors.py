"""Where a look begins, and when it must begin at the beginning: the policy alone, with time in hand."""

from __future__ import annotations

from perdure.engines.postgres.claims.cursors import Cursors

ONE_QUEUE = {"q": 10}


class Hands:
    """A monotonic clock."""

    def __init__(self) -> None:
        self.time = 100.0

    def __call__(self) -> float:
        return self.time


def a_look(cursors: Cursors, *found: tuple[int, int], queue: str = "q", limit: int = 10) -> None:
    cursors.looked({queue: limit}, [(queue, priority, number, False, False) for priority, number in found])


def test_the_first_look_is_a_full_one() -> None:
    assert Cursors(Hands()).wants_full_look(ONE_QUEUE)


def test_looks_go_on_behind_the_highest_number_taken_for_each_priority() -> None:
    cursors = Cursors(Hands())
    a_look(cursors, (5, 7), (5, 9), (0, 3), (5, 8))
    a_look(cursors, (5, 4))
    assert cursors.starts("q") == [3, 0, 0, 0, 0, 9, 0, 0, 0, 0]
    assert cursors.starts("other") == [0] * 10


def test_while_jobs_are_found_a_full_look_is_due_every_ten_seconds() -> None:
    hands = Hands()
    cursors = Cursors(hands)
    a_look(cursors, (5, 1))
    cursors.looked_fully(ONE_QUEUE, 0.001)
    hands.time += 9.9
    assert not cursors.wants_full_look(ONE_QUEUE)
    hands.time += 0.1
    assert cursors.wants_full_look(ONE_QUEUE)


def test_a_full_look_at_one_queue_is_none_at_another() -> None:
    hands = Hands()
    cursors = Cursors(hands)
    cursors.looked({"q": 1, "other": 1}, [("q", 5, 1, False, False), ("other", 5, 2, False, False)])
    cursors.looked_fully(["q", "other"], 0.001)
    hands.time += 9
    cursors.looked_fully(["q"], 0.001)
    hands.time += 1
    assert not cursors.wants_full_look(["q"])
    assert cursors.wants_full_look(["q", "other"])


def test_every_second_a_look_begins_where_the_store_was_five_seconds_ago() -> None:
    hands = Hands()
    cursors = Cursors(hands)
    a_look(cursors, (5, 100))
    cursors.looked_fully(ONE_QUEUE, 0.001)
    begun = []
    for second in range(1, 9):
        hands.time += 0.5
        assert not cursors.wants_look_back()
        hands.time += 0.5
        assert cursors.wants_look_back()
        begun.append(cursors.earlier_starts("q")[5])
        a_look(cursors, (5, 100 + second))
        cursors.looked_back(0.001)
    assert begun == [0, 0, 0, 0, 0, 100, 101, 102], "five seconds before the first look it was at the beginning"


def test_a_look_back_at_a_queue_that_is_new_begins_at_the_beginning() -> None:
    hands = Hands()
    cursors = Cursors(hands)
    for number in (100, 101):
        a_look(cursors, (5, number))
        cursors.looked_fully(ONE_QUEUE, 0.001)
        hands.time += 10
    assert cursors.earlier_starts("q")[5] == 100
    assert cursors.earlier_starts("other") == [0] * 10


def test_looks_back_never_take_more_than_a_twentieth_of_the_time() -> None:
    hands = Hands()
    cursors = Cursors(hands)
    cursors.looked_fully(ONE_QUEUE, 0.001)
    hands.time += 1
    a_look(cursors, (5, 1))
    cursors.looked_back(0.2)
    hands.time += 3.7
    assert not cursors.wants_look_back()
    hands.time += 0.11
    assert cursors.wants_look_back()


def test_a_look_that_found_nothing_is_followed_by_a_full_one() -> None:
    hands = Hands()
    cursors = Cursors(hands)
    a_look(cursors, (5, 1))
    cursors.looked_fully(ONE_QUEUE, 0.0002)
    hands.time += 0.01
    assert not cursors.wants_full_look(ONE_QUEUE)
    a_look(cursors)
    assert cursors.wants_full_look(ONE_QUEUE)


def test_full_looks_never_take_more_than_a_twentieth_of_the_time() -> None:
    hands = Hands()
    cursors = Cursors(hands)
    spent = 0.0
    while hands.time < 200.0:
        a_look(cursors)
        if cursors.wants_full_look(ONE_QUEUE):
            hands.time += 0.4
            spent += 0.4
            cursors.looked_fully(ONE_QUEUE, 0.4)
        hands.time += 0.01
    assert 0.04 <= (spent - 0.4) / 100.0 <= 0.05, "the first look is free"


def test_an_empty_lane_moves_on_to_what_was_newest_a_second_ago() -> None:
    """Others took the jobs: their dead entries need not be passed over for ever."""
    hands = Hands()
    cursors = Cursors(hands)
    assert cursors.wants_mark()
    cursors.mark(1_000)
    a_look(cursors)
    assert cursors.starts("q") == [0] * 10, "a number given out just now may belong to a transaction still under way"
    hands.time += 0.5
    assert not cursors.wants_mark()
    hands.time += 0.5
    assert cursors.wants_mark()
    cursors.mark(2_000)
    a_look(cursors)
    assert cursors.starts("q") == [1_000] * 10


def test_once_numbers_begin_again_nothing_is_taken_for_claimed() -> None:
    hands = Hands()
    cursors = Cursors(hands)
    for newest in (1_000, 2_000, 500):
        cursors.mark(newest)
        a_look(cursors, (5, newest))
        cursors.looked_fully(ONE_QUEUE, 0.001)
        hands.time += 10
    assert cursors.starts("q") == [0, 0, 0, 0, 0, 500, 0, 0, 0, 0]
    cursors.mark(600)
    a_look(cursors)
    assert cursors.starts("q") == [500] * 10


def test_a_lane_with_a_backlog_stays_where_it_is() -> None:
    """Urgent jobs fill every batch; those that wait behind them keep their place."""
    hands = Hands()
    cursors = Cursors(hands)
    cursors.mark(1_000)
    hands.time += 1
    cursors.mark(2_000)
    a_look(cursors, (3, 1_990), (3, 1_991), limit=2)
    assert cursors.starts("q") == [1_000, 1_000, 1_000, 1_991, 0, 0, 0, 0, 0, 0]


def test_a_look_filled_by_what_lay_behind_is_followed_by_one_from_there() -> None:
    cursors = Cursors(Hands())
    a_look(cursors, (5, 90), (7, 80), limit=10)
    a_look(cursors, (5, 20), (5, 21), limit=2)
    assert cursors.starts("q") == [0, 0, 0, 0, 0, 21, 0, 80, 0, 0]
    a_look(cursors, (5, 22), (5, 95), limit=2)
    assert cursors.starts("q") == [0, 0, 0, 0, 0, 95, 0, 80, 0, 0]


def test_a_queue_not_looked_at_stays_where_it_is() -> None:
    hands = Hands()
    cursors = Cursors(hands)
    cursors.mark(1_000)
    hands.time += 1
    cursors.mark(2_000)
    a_look(cursors)
    assert cursors.starts("other") == [0] * 10


def test_jobs_that_came_back_move_a_lane_on_and_never_back() -> None:
    """They are found wherever a look begins, so they say nothing of what lies behind it."""
    cursors = Cursors(Hands())
    a_look(cursors, (0, 70), (5, 90))
    cursors.looked({"q": 2}, [("q", 5, 20, False, True), ("q", 5, 21, False, True)])
    assert cursors.starts("q") == [70, 0, 0, 0, 0, 90, 0, 0, 0, 0]
    cursors.looked({"q": 1}, [("q", 0, 10, False, True)])
    assert cursors.starts("q") == [70, 0, 0, 0, 0, 90, 0, 0, 0, 0]
    cursors.looked({"q": 2}, [("q", 5, 20, False, True), ("q", 5, 95, False, True)])
    assert cursors.starts("q") == [70, 0, 0, 0, 0, 95, 0, 0, 0, 0]


def test_a_look_filled_by_late_ones_and_by_some_that_came_back_is_followed_by_one_from_the_late_ones() -> None:
    cursors = Cursors(Hands())
    a_look(cursors, (5, 90))
    cursors.looked({"q": 2}, [("q", 5, 21, False, False), ("q", 5, 50, False, True)])
    assert cursors.starts("q")[5] == 21
