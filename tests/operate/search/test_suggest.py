"""Suggestions complete a search as people type it."""

from __future__ import annotations

from tests.support.builders.jobs import enqueue

from perdure.domain.operate.condition import FIELDS
from perdure.operate.desk import Desk
from perdure.operate.search import Suggestion
from perdure.storage.port import Store


async def test_suggestions_complete_the_word_at_the_cursor(store: Store) -> None:
    await enqueue(store, kind="charge_card", queue="mail", args='{"user":{"id":1},"a b":2}', tags=("eu",))
    desk = Desk(store, "ada")

    async def offered(text: str, cursor: int | None = None) -> list[str]:
        return [each.text for each in await desk.suggestions(text, cursor)]

    assert Suggestion("kind:", "jobs of this kind") in await desk.suggestions("")
    assert {f"{field}." if field in {"args", "meta", "result"} else f"{field}~" for field in FIELDS} <= {
        word for begun in ("a", "m", "r", "e", "t") for word in await offered(begun)
    }
    assert await offered("st") == ["state:"]
    assert await offered("queue:mail state:de") == ["state:dead"]
    assert await offered("kind:ch") == ["kind:charge_card"]
    assert await offered("queue:") == ["queue:mail"]
    assert await offered("tag:e") == ["tag:eu"]
    assert await offered("args.") == ['args."a b"=', "args.user.id="]
    assert await offered("has:args.u") == ["has:args.user.id"]
    assert await offered("state:dea kind:x", 9) == ["state:dead"]
    assert await offered("nothing:") == []
