"""Two living workers of one name: the later one says so."""

from __future__ import annotations

from tests.support.builders.jobs import a_worker
from tests.support.working import at_work

from perdure import App
from perdure.domain.worker import ProcessIdentity
from perdure.events import NameShared
from perdure.lifecycle.process.identity import this_process
from perdure.storage.port import Store

UNUSED = "sqlite:///unused.db"


async def test_a_living_worker_of_the_same_name_is_reported(real_time_store: Store) -> None:
    """Nothing is at risk, but people will mix them up."""
    here = this_process()
    elsewhere = ProcessIdentity("host-2/boot-1/pid:[1]", 4711, 1)
    gone = ProcessIdentity(here.host, 2**22 + 1, 1)
    for process in (elsewhere, gone, here):
        await real_time_store.register(a_worker(name="twin", process=process))
    await real_time_store.register(a_worker(name="other", process=elsewhere))
    retired = await real_time_store.register(a_worker(name="twin", process=ProcessIdentity("host-3/b/n", 1, 1)))
    await real_time_store.retire(retired)
    async with at_work(real_time_store, App(UNUSED), name="twin") as shift:
        assert [event.others for event in shift.told(NameShared)] == [("host-2 pid 4711",)]
    async with at_work(real_time_store, App(UNUSED), name="unique") as shift:
        assert shift.told(NameShared) == []
