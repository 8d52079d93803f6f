"""The records that the desk returns."""

from __future__ import annotations

import json

from tests.support.builders.views import a_view, an_attempt

from perdure.operate.records import JobDetail, JobPage, Remedy


def test_a_job_as_a_dictionary_is_plain_json_with_its_documents_decoded() -> None:
    detail = JobDetail(a_view(args='{"n": 1}', result="[2]"), (an_attempt(),))
    told = detail.to_dict()
    assert json.loads(json.dumps(told)) == told
    assert (told["job"]["args"], told["job"]["result"]) == ({"n": 1}, [2])
    assert told["attempts"][0]["started_at"] == "2026-03-04T12:00:00Z"
    page = JobPage((a_view(args="{oops"),), None).to_dict()
    assert page["jobs"][0]["args"] == "{oops"


def test_a_remedy_is_a_command_whose_target_is_one_word_of_the_shell() -> None:
    assert Remedy("resume", "p 1; rm -rf", "Resume").cli == "perdure resume 'p 1; rm -rf'"
    assert Remedy("answer", "go", "Answer").cli == ""
