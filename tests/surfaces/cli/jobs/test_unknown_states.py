"""G10 at the command line: a job in a state that only the next release knows is shown, and left alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.support.builders.jobs import job_in, show
from tests.support.databases.behind import query
from tests.surfaces.conftest import Arrange, Cli

from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import JobView
from perdure.domain.jobs.states import JobState
from perdure.surfaces.cli.exits import Exit

WORD = "hibernating"
Look = Callable[[], JobView]


@pytest.fixture(params=["parked", "finished"])
def job_id(request: pytest.FixtureRequest, arrange: Arrange[JobId], engine_url: str) -> JobId:
    """A job of the next release."""
    state = JobState.PAUSED if request.param == "parked" else JobState.DEAD
    job_id = arrange(lambda store: job_in(state, store))
    query(engine_url, f"UPDATE {{{request.param}}} SET state = '{WORD}', reason = 'too cold', note = NULL")
    return job_id


@pytest.fixture
def look(arrange: Arrange[JobView], job_id: JobId) -> Look:
    """See how the job stands."""
    return lambda: arrange(lambda store: show(store, job_id))


def test_g10_it_is_listed_and_shown(cli: Cli, job_id: JobId) -> None:
    for words in (("jobs", "list"), ("jobs", "list", "--kind", "greet"), ("jobs", "list", "--queue", "default")):
        answer = cli(*words)
        assert (answer.code, job_id in answer.out, WORD in answer.out) == (Exit.OK, True, True)
    [listed] = cli("jobs", "list", "--json").json["jobs"]
    assert (listed["id"], listed["state"], listed["reason"]) == (job_id, WORD, "too cold")
    page = cli("jobs", "show", job_id)
    assert page.code == Exit.OK
    assert WORD.upper() in page.out
    assert "too cold" in page.out
    assert cli("jobs", "show", job_id, "--json").json["job"]["state"] == WORD


def test_g10_why_says_who_knows_more(cli: Cli, job_id: JobId) -> None:
    answer = cli("jobs", "why", job_id)
    assert answer.code == Exit.OK
    assert f"It is {WORD}, which only a newer release of perdure knows: too cold." in " ".join(answer.out.split())


@pytest.mark.parametrize("command", ["cancel", "requeue", "run-now", "delete"])
def test_g10_a_command_that_names_it_says_why_it_does_nothing(
    cli: Cli, job_id: JobId, look: Look, command: str
) -> None:
    before = look()
    for words in (("--yes",), ("--dry-run",)):
        answer = cli("jobs", command, job_id, *words)
        assert answer.code == Exit.CONFLICT
        assert f"it is {WORD}, which only a newer release of perdure knows" in " ".join(answer.err.split())
    assert look() == before


@pytest.mark.parametrize("command", ["cancel", "requeue", "run-now", "delete"])
def test_g10_a_command_with_a_filter_passes_it_by(cli: Cli, look: Look, command: str) -> None:
    before = look()
    answer = cli("jobs", command, "--kind", "greet", "--yes")
    assert (answer.code, "Nothing was" in answer.out) == (Exit.OK, True)
    assert look() == before


def test_g10_doctor_counts_them(cli: Cli, job_id: JobId) -> None:
    answer = cli("doctor")
    said = " ".join(answer.out.split())
    assert f"jobs in a state that only a newer release knows: {WORD} (1)" in said
    assert "upgrade perdure here" in said
    [finding] = [each for each in cli("doctor", "--json").json["findings"] if each["check"] == "unknown states"]
    assert finding["severity"] == "warning"


def test_doctor_has_nothing_to_say_where_all_states_are_known(cli: Cli, arrange: Arrange[JobId]) -> None:
    arrange(lambda store: job_in(JobState.PAUSED, store))
    [finding] = [each for each in cli("doctor", "--json").json["findings"] if each["check"] == "unknown states"]
    assert (finding["severity"], finding["seen"]) == ("ok", "none")


@pytest.mark.parametrize(("state", "place"), [(JobState.PAUSED, "parked"), (JobState.DEAD, "finished")])
def test_g10_a_reason_of_the_next_release_is_shown_as_it_is(
    cli: Cli, arrange: Arrange[JobId], engine_url: str, state: JobState, place: str
) -> None:
    """Its state is known, so it is like any other job of that state."""
    job_id = arrange(lambda store: job_in(state, store))
    query(engine_url, f"UPDATE {{{place}}} SET reason = 'too cold', note = NULL")
    for words in (("jobs", "show"), ("jobs", "why")):
        answer = cli(*words, job_id)
        assert (answer.code, "too cold" in answer.out) == (Exit.OK, True)
    assert cli("jobs", "cancel" if place == "parked" else "requeue", job_id, "--yes").code == Exit.OK


def test_g10_a_worker_in_a_phase_of_the_next_release_is_listed(
    cli: Cli, arrange: Arrange[JobId], engine_url: str
) -> None:
    arrange(lambda store: job_in(JobState.RUNNING, store))
    query(engine_url, "UPDATE {worker} SET phase = 'dreaming'")
    for words in (("workers", "--json"), ("workers",), ("doctor",)):
        assert cli(*words).code in {Exit.OK, Exit.UNHEALTHY}
    assert cli("workers", "--json").json["workers"][0]["phase"] == "dreaming"


def test_a_word_that_is_no_state_is_refused_as_a_filter(cli: Cli, job_id: JobId) -> None:
    answer = cli("jobs", "list", "--state", "ded")
    assert answer.code == Exit.USAGE
    assert "'ded' is not a state; states are scheduled" in " ".join(answer.err.split())
