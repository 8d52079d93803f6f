"""The connections of one store.

They are few, and each kind has its own, so that no part waits for another. Each is opened when it is first needed.
"""

from __future__ import annotations

from typing import NamedTuple

from perdure.engines.postgres.database.connections import Pool, Server


class Pools(NamedTuple):
    """One pool for each kind of work; `desk` serves everything that has no pool of its own."""

    intake: Pool
    claims: Pool
    acknowledgements: Pool
    upkeep: Pool
    flows: Pool
    gates: Pool
    desk: Pool
    bell: Pool


def pools_of(server: Server) -> Pools:
    """The pools of a store on this server, none of them open."""
    return Pools(
        intake=Pool(server, 2),
        claims=Pool(server),
        acknowledgements=Pool(server),
        upkeep=Pool(server),
        flows=Pool(server, 2),
        gates=Pool(server, 2),
        desk=Pool(server, 2, prepare=False),
        bell=Pool(server, durable=False),
    )
