"""A process that asks for the same audits as others, at the same moment: `racer.py ROUNDS REQUESTS`.

It says `ready`, waits for a line, and prints what it was given for each round.
"""

from __future__ import annotations

import asyncio
import json
import sys

from perdure_systems.audits.intake import create_or_find
from perdure_systems.audits.jobs import app, database


async def ask(number: int, requests: int) -> list[tuple[str, bool]]:
    """Ask so many times at once for the page of this round."""
    url = f"https://site-{number}.example/"
    taken = await asyncio.gather(*(create_or_find(url, "mobile") for _ in range(requests)))
    return [(one.id, one.is_new) for one in taken]


async def main(rounds: int, requests: int) -> None:
    async with app:
        await database.migrate()
        print("ready", flush=True)  # noqa: T201 - the test reads it
        await asyncio.to_thread(sys.stdin.readline)
        for number in range(rounds):
            print(f"round {json.dumps(await ask(number, requests))}", flush=True)  # noqa: T201 - as above
    await database.close()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))
