"""The list of bulk commands beyond its first page, on the desk and over HTTP."""

from __future__ import annotations

import re

from httpx import AsyncClient
from tests.support.web.http_site import client_of

from perdure.domain.operate.audit import By
from perdure.storage.operate.bulk import BulkParams, NewBulk
from perdure.storage.port import Store
from perdure.storage.records import JobFilter
from perdure.surfaces.server.site import Site


async def _start(store: Store, count: int) -> None:
    for number in range(count):
        new = NewBulk(
            id=f"bulk{number:03d}",
            action="requeue",
            filter=JobFilter(),
            params=BulkParams(),
            jobs=0,
            capped=False,
            cursor=None,
        )
        await store.start_bulk(new, By("ada"))


async def test_the_desk_turns_to_older_bulk_commands_and_back(pages: AsyncClient, store: Store) -> None:
    await _start(store, 52)
    first = (await pages.get("/bulk")).text
    [after] = re.findall(r'href="([^"]+)" rel="next"', first)
    rest = (await pages.get(after)).text
    seen = [re.findall(r'<tr id="bulk-(bulk\d+)"', page) for page in (first, rest)]
    assert [len(page) for page in seen] == [50, 2]
    assert len({*seen[0], *seen[1]}) == 52
    assert 'href="/bulk">First page' in rest
    assert (await pages.get("/bulk?before=gone")).status_code == 404


async def test_over_http_a_cursor_leads_through_all_of_them(site: Site) -> None:
    await _start(await site.backing.store(), 3)
    async with client_of(site) as client:
        first = (await client.get("/api/v1/bulk", params={"limit": 2})).json()
        rest = (await client.get("/api/v1/bulk", params={"limit": 2, "cursor": first["next"]})).json()
        assert len({one["id"] for one in first["bulk"] + rest["bulk"]}) == 3
        assert rest["next"] is None
        foreign = (await client.get("/api/v1/audit", params={"limit": 1})).json()["next"]
        refused = await client.get("/api/v1/bulk", params={"cursor": foreign})
        assert (refused.status_code, refused.json()["field"]) == (422, "cursor")
