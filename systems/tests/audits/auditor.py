"""A worker of the audits in a process of its own. It says when it prints a report, and never ends that."""

from __future__ import annotations

import asyncio

from perdure_systems.audits.jobs import app, database
from perdure_systems.audits.pipeline.instruments import using_instruments
from perdure_systems.audits.standins import QuickInstruments


class Hanging(QuickInstruments):
    """Never prints."""

    async def print_pdf(self, html: str, footer: str) -> bytes:
        print("printing", flush=True)  # noqa: T201 - the test reads it
        await asyncio.sleep(3600)
        return await super().print_pdf(html, footer)


async def main() -> None:
    with using_instruments(Hanging()):
        async with app:
            await database.migrate()
            await (await app.worker()).run()


if __name__ == "__main__":
    asyncio.run(main())
