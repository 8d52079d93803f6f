"""Names that people know jobs by, as an app gives them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.support.builders.jobs import numbered_id
from tests.support.working import at_work, seen

from perdure import App, Context
from perdure.errors import ArgumentError


@pytest.fixture
async def app(engine_url: str) -> AsyncIterator[App]:
    async with App(engine_url) as app:
        yield app


async def test_f4_the_handler_knows_the_ref(app: App) -> None:
    @app.job
    async def audit(ctx: Context) -> str:
        return f"{ctx.ref}"

    handles = [await audit.using(ref="JB_abc123").enqueue(), await audit.enqueue()]
    again = await audit.using(ref="JB_abc123").enqueue()
    assert (again.id, again.is_new) == (handles[0].id, False)
    store = await app.store()
    async with at_work(store, app):
        views = [await seen(store, handle.id) for handle in handles]
    assert [view.result for view in views] == ['"JB_abc123"', '"None"']


@pytest.mark.parametrize(
    "ref", ["", " ", " JB", "a\nb", "x" * 201, 7, numbered_id(7), numbered_id(7).upper().replace("0000", "ABCD", 1)]
)
async def test_f4_what_cannot_be_a_ref_is_refused_by_name(app: App, ref: Any) -> None:
    @app.job
    async def audit() -> None: ...

    with pytest.raises(ArgumentError, match=r"^ref must"):
        audit.using(ref=ref)


async def test_f4_a_ref_cannot_stand_for_many(app: App) -> None:
    @app.job
    async def audit() -> None: ...

    named = audit.using(ref="JB_1").call()
    with pytest.raises(ArgumentError, match=r"^ref cannot be combined with a schedule"):
        await app.schedule("often", named, every="1h")
    with pytest.raises(ArgumentError, match=r"^ref of audit cannot be set for a child, a batch or a chain"):
        await app.batch([named])
    with pytest.raises(ArgumentError, match=r"^ref of audit cannot be set"):
        await (named | audit.call()).enqueue()
