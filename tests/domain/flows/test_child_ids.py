"""Ids of children."""

from __future__ import annotations

from uuid import UUID

from tests.support.builders.jobs import numbered_id

from perdure.domain.flows.child_ids import CHILDREN_LIMIT, child_ids
from perdure.domain.jobs.ids import is_job_id, new_job_id


def test_the_same_child_always_has_the_same_id() -> None:
    parent = numbered_id(7)
    assert list(child_ids(parent, "pages", 3)) == list(child_ids(parent, "pages", 9))[:3]
    others = [*child_ids(parent, "pages", 3), *child_ids(parent, "mails", 3), *child_ids(numbered_id(8), "pages", 3)]
    assert len(set(others)) == 9


def test_children_are_uuids_beside_their_parent_in_the_order_of_their_numbers() -> None:
    parent = new_job_id()
    ids = list(child_ids(parent, "pages", CHILDREN_LIMIT))
    assert ids == sorted(ids)
    for job_id in (ids[0], ids[-1]):
        assert is_job_id(job_id)
        assert job_id[:13] == parent[:13]
        assert (UUID(job_id).version, UUID(job_id).variant) == (8, "specified in RFC 4122")
