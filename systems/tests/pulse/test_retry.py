"""Errors that may pass are tried again twice (C9), and the log says so word by word."""

from __future__ import annotations

import pytest
from structlog.typing import EventDict
from systems.tests.pulse.support import SQLITE, children_of, put

from perdure import JobState
from perdure.testing import Sandbox
from perdure_systems.pulse import jobs
from perdure_systems.pulse.log_lines import job_id_of, public_id
from perdure_systems.pulse.operations import find
from perdure_systems.pulse.standins import ModelStandin
from perdure_systems.pulse.web.views import show_all

FAILED = "AI call failed: "
CAUSES = {
    "an AI call": (503, "the model answered 503"),
    "the network": (0, "RemoteProtocolError: "),
}


def lines(logged: list[EventDict]) -> list[tuple[str, str]]:
    return [(entry["log_level"], entry["event"]) for entry in logged if entry["event"].startswith("꩜")]


@SQLITE
@pytest.mark.parametrize("cause", CAUSES)
async def test_c9_two_retries_follow_at_once_and_the_third_failure_is_final(
    box: Sandbox, standin: ModelStandin, logged: list[EventDict], cause: str
) -> None:
    status, words = CAUSES[cause]
    standin.next_answers.extend([status] * 3)
    submitted = await put(1)
    before = box.now
    await box.drain()
    [child] = await children_of(submitted.job_id)
    name = public_id(child.id)
    assert len(standin.asked) == 3, "3 attempts in all"
    assert box.now == before, "no wait between them"
    assert (child.state, child.failures, child.max_attempts) == (JobState.DEAD, 3, 3)
    told = lines(logged)
    assert [level for level, _ in told[:3]] == ["warning", "warning", "error"]
    for (_, line), start in zip(told, ("꩜ Retry 1/2: ", "꩜ Retry 2/2: ", "꩜ Max retries exceeded (2): "), strict=False):
        assert line.startswith(f"{start}{FAILED}{words}")
        assert line.endswith(f" | job:{name}")
    assert name.startswith("JB_")
    assert job_id_of(name) == child.id


async def test_c9_the_lines_word_by_word(box: Sandbox, standin: ModelStandin, logged: list[EventDict]) -> None:
    standin.next_answers.extend([503] * 3)
    submitted = await put(1)
    await box.drain()
    [child] = await children_of(submitted.job_id)
    error = f"{FAILED}the model answered 503"
    assert [line for _, line in lines(logged)][:3] == [
        f"꩜ Retry 1/2: {error} | job:{public_id(child.id)}",
        f"꩜ Retry 2/2: {error} | job:{public_id(child.id)}",
        f"꩜ Max retries exceeded (2): {error} | job:{public_id(child.id)}",
    ]


@SQLITE
async def test_c9_silence_of_the_model_is_a_timeout_and_is_retried(
    box: Sandbox, standin: ModelStandin, logged: list[EventDict], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PULSE_MODEL_TIMEOUT", "100ms")
    standin.delay = 0.4
    submitted = await put(1)
    await box.drain()
    [child] = await children_of(submitted.job_id)
    assert (child.state, len(standin.asked)) == (JobState.DEAD, 3)
    assert lines(logged)[0][1] == f"꩜ Retry 1/2: {FAILED}no answer within 0.1 s | job:{public_id(child.id)}"


async def test_c9_each_retry_updates_the_count_and_the_error(box: Sandbox, standin: ModelStandin) -> None:
    standin.next_answers.extend([503, 500])
    submitted = await put(1)
    seen: list[tuple[int, str]] = []
    desk = await jobs.app.desk("test")
    for attempts in (1, 2, 3):
        await box.drain(until=lambda so_far=attempts: len(standin.asked) == so_far)  # type: ignore[misc]
        [child] = await children_of(submitted.job_id)
        [shown] = await show_all(desk, [await find(desk, public_id(child.id))])
        seen.append((shown.retry_count, (shown.error or "").rpartition(" ")[2]))
    assert seen == [(1, "503"), (2, "500"), (2, "500")]
    assert (shown.state, shown.max_retries) == ("completed", 2), "delivered on attempt 3, and the count is kept"


@SQLITE
async def test_c9_what_will_not_pass_is_not_tried_again(
    box: Sandbox, standin: ModelStandin, logged: list[EventDict]
) -> None:
    standin.next_answers.append(422)
    submitted = await put(1)
    await box.drain()
    [child] = await children_of(submitted.job_id)
    assert (child.state, child.failures, len(standin.asked)) == (JobState.DEAD, 1, 1)
    assert lines(logged)[0][1].startswith("꩜ Failed: ")


@SQLITE
async def test_c9_a_bug_is_not_tried_again(box: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(_: str) -> int:
        raise KeyError("title")

    monkeypatch.setattr(jobs, "split_document", broken)
    submitted = await put(1)
    await box.drain()
    view = await box.job(submitted.job_id)
    assert (view.state, view.failures) == (JobState.DEAD, 1)
    assert "KeyError: 'title'" in (view.last_error or "")
