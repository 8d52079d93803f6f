"""`perdure jobs show` and `jobs delete`, of parents and children."""

from __future__ import annotations

import pytest
from tests.support.builders.families import offspring, spawn
from tests.support.builders.jobs import enqueue, start, state_of
from tests.support.databases.behind import query
from tests.surfaces.conftest import Arrange, Cli

from perdure.domain.flows.flow import OnEnd
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.states import JobState
from perdure.storage.port import Store
from perdure.surfaces.cli.exits import Exit


@pytest.fixture
def parent_and_child(arrange: Arrange[tuple[JobId, JobId]]) -> tuple[JobId, JobId]:
    """A running parent of two."""

    async def begin(store: Store) -> tuple[JobId, JobId]:
        claim = await start(store, kind="ingest")
        family = await spawn(store, claim, *offspring(2), key="loads", quorum=1, on_end=OnEnd.KEEP)
        return claim.job_id, family.children[0].id

    return arrange(begin)


def test_a_parent_shows_its_families_and_a_child_its_parent(cli: Cli, parent_and_child: tuple[JobId, JobId]) -> None:
    parent, child = parent_and_child
    page = cli("jobs", "show", parent).out
    assert "loads  0 of 2 succeeded, 0 failed, 1 are enough, kept when the parent ends" in page
    assert parent in cli("jobs", "show", child).out
    [family] = cli("jobs", "show", parent, "--json").json["families"]
    assert (family["key"], family["total"], family["failed"]) == ("loads", 2, 0)
    assert cli("jobs", "show", child, "--json").json["job"]["parent"] == parent


def test_c6_delete_forgets_a_job_and_calls_off_its_children(
    cli: Cli, engine_url: str, arrange: Arrange[JobState], parent_and_child: tuple[JobId, JobId]
) -> None:
    parent, child = parent_and_child
    foreseen = cli("jobs", "delete", parent, "--dry-run", "--json").json
    assert (foreseen["ids"], foreseen["asked"]) == ([parent], [])
    assert cli("jobs", "delete", parent).code == Exit.USAGE
    answer = cli("jobs", "delete", parent, "--yes")
    assert answer.code == Exit.OK
    assert "1 job deleted" in answer.out
    assert cli("jobs", "show", parent).code == Exit.NOT_FOUND
    assert arrange(lambda store: state_of(store, child)) is JobState.CANCELLED
    assert "parent job deleted" in cli("jobs", "show", child).out
    assert cli("jobs", "delete", parent, "--yes").code == Exit.NOT_FOUND
    audited = query(engine_url, "SELECT job_id FROM {audit} WHERE action = 'delete'")
    assert [str(job_id) for (job_id,) in audited] == [parent]


def test_the_children_of_a_job_are_listed(
    cli: Cli, arrange: Arrange[JobId], parent_and_child: tuple[JobId, JobId]
) -> None:
    parent, child = parent_and_child
    arrange(enqueue)
    listed = cli("jobs", "list", "--parent", parent, "--json").json["jobs"]
    assert (len(listed), {job["parent"] for job in listed}) == (2, {parent})
    assert child in {job["id"] for job in listed}
    assert cli("jobs", "list", "--parent", parent, "--state", "dead", "--json").json["jobs"] == []
    empty = cli("jobs", "list", "--parent", child)
    assert (empty.code, empty.out) == (Exit.OK, "No jobs.\n")
    assert cli("jobs", "list", "--parent", "01980000-0000-7000-8000-000000000000").code == Exit.NOT_FOUND
