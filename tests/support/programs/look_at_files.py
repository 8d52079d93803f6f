"""What a process without rights sees of SQLite files: `python -m tests.support.programs.look_at_files FILE…`."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any

from perdure.engines.sqlite.store import SqliteStore
from perdure.errors import StoreError
from perdure.storage.records import JobFilter, Page


async def look(path: str, driver: str) -> dict[str, Any]:
    """What reads and a write answer, and the files afterwards."""
    store = SqliteStore(path, driver=driver)
    try:
        await store.open()
    except StoreError as error:
        return {"refused": str(error)}
    try:
        await store.check_schema()
        seen: dict[str, Any] = {"jobs": len(await store.jobs(JobFilter(), Page())), "why": await store.why_read_only()}
        seen["found"] = [finding.seen for finding in await store.diagnose() if finding.check == "access"]
        try:
            await store.step_down("scheduler", "someone")
        except StoreError as error:
            seen["write"] = str(error)
    except StoreError as error:
        seen = {"failed": str(error)}
    finally:
        await store.close()
    return seen | {"files": sorted(os.listdir(os.path.dirname(path)))}  # noqa: PTH120, PTH208 - paths are text


async def main() -> None:
    """Look at each file through each library."""
    found = {f"{path} {driver}": await look(path, driver) for path in sys.argv[1:] for driver in ("apsw", "sqlite3")}
    print(json.dumps(found))  # noqa: T201 - the answer


if __name__ == "__main__":
    asyncio.run(main())
