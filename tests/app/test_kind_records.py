"""What an app says of its kinds to those who have none of its code."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from perdure import App, JobFilter, Keep
from perdure.errors import ArgumentError, SettingsError
from perdure.storage.operate.kinds import KindRecord

DAY = timedelta(days=1)
MONTH = Keep(succeeded="30d", cancelled="30d", dead="30d")


def declared(app: App, **options: Any) -> KindRecord:
    async def send() -> None: ...

    app.job(**options)(send)
    return app.kind_records["send"]


async def test_f4_words_and_times_are_known_once_the_app_is_open(engine_url: str) -> None:
    app = App(engine_url)
    said = declared(app, keep="30d", state_words={"succeeded": "sent", "dead": "dead"})
    assert said == KindRecord(name="send", words={"succeeded": "sent", "dead": "dead"}, keep=MONTH)
    async with app:
        assert await (await app.store()).kinds() == [said]
        handle = await app.job_named("send").enqueue()
        assert (await handle.view()).word is None
    silent = App(engine_url)
    declared(silent)
    async with silent:
        assert await (await silent.store()).kinds() == [said], "who says nothing changes nothing before it works"


async def test_f4_one_word_is_no_list_of_letters(engine_url: str) -> None:
    app = App(engine_url)
    declared(app, state_words={"succeeded": "sent"})
    async with app:
        desk = await app.desk("ann")
        assert await desk.meaning("sent") == JobFilter(states=("succeeded",), kind="send")
        assert await desk.meaning("dead") == JobFilter(states=("dead",))


async def test_f4_a_worker_says_what_its_app_declares(engine_url: str) -> None:
    """Also that there is nothing to be said any more."""
    async with App(engine_url) as app:
        said = declared(app, keep=Keep(succeeded="90d", cancelled="30d", dead=None))
        store = await app.store()
        assert await store.kinds() == []
        for records in ([said], []):
            worker = await app.worker()
            running = worker.run()
            worker.stop()
            await running
            assert await store.kinds() == records
            app.kind_records["send"] = KindRecord(name="send")


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (
            {"state_words": {"sent": "succeeded"}},
            "state_words of job send name 'sent', which is not a state; states are",
        ),
        ({"state_words": {"succeeded": "dead"}}, "call succeeded 'dead', which is the name of another state"),
        ({"state_words": ["sent"]}, "must give words by state"),
        ({"state_words": {"succeeded": ""}}, "succeeded must be 1 to 100 printable characters"),
        ({"keep": "long"}, "^keep of job send"),
        ({"keep": -1}, "^keep of job send"),
    ],
)
def test_f4_what_cannot_be_meant_is_refused_when_it_is_declared(options: dict[str, Any], match: str) -> None:
    app = App("sqlite:///unused.db")
    with pytest.raises((SettingsError, ArgumentError), match=match):
        declared(app, **options)
    assert app.kinds == {}
