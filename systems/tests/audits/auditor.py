"""A worker of the audits in a process of its own: `auditor.py [hang]`. With `hang` it says when it prints, and waits.

Its lease is short, so that another one soon takes over what it leaves behind.
"""

from __future__ import annotations

import asyncio
import sys

from msgspec.structs import replace

from perdure_systems.audits.instruments import using_instruments
from perdure_systems.audits.jobs import app, database
from perdure_systems.audits.standins import QuickInstruments


class Hanging(QuickInstruments):
    """Never prints."""

    async def print_pdf(self, html: str, footer: str) -> bytes:
        print("printing", flush=True)  # noqa: T201 - the test reads it
        await asyncio.sleep(3600)
        return await super().print_pdf(html, footer)


async def main(hangs: bool) -> None:
    with using_instruments(Hanging() if hangs else QuickInstruments()):
        async with app:
            await database.migrate()
            settings = replace(app.worker_settings, heartbeat="500ms", lease="1500ms", sweep="300ms")
            await (await app.worker(settings)).run()


if __name__ == "__main__":
    asyncio.run(main("hang" in sys.argv))
