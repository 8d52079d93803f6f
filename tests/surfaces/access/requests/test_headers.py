"""Headers of every answer."""

from __future__ import annotations

from starlette.datastructures import Headers

from perdure.surfaces.access.login.csrf import Message
from perdure.surfaces.access.requests.headers import CONTENT_SECURITY_POLICY, with_security_headers


async def sent(message: Message) -> Message:
    kept: list[Message] = []

    async def keep(message: Message) -> None:
        kept.append(message)

    await with_security_headers(keep)(message)
    return kept[0]


async def test_a_page_may_set_its_caching_and_weaken_nothing_else() -> None:
    own = [(b"cache-control", b"max-age=60"), (b"x-frame-options", b"ALLOWALL"), (b"content-security-policy", b"*")]
    answer = await sent({"type": "http.response.start", "status": 200, "headers": own})
    headers = Headers(raw=answer["headers"])
    assert headers["cache-control"] == "max-age=60"
    assert headers.getlist("x-frame-options") == ["DENY"]
    assert headers.getlist("content-security-policy") == [CONTENT_SECURITY_POLICY]
    plain = Headers(raw=(await sent({"type": "http.response.start", "status": 200}))["headers"])
    assert plain["cache-control"] == "no-store"


async def test_the_body_of_an_answer_passes_unchanged() -> None:
    body = {"type": "http.response.body", "body": b"x"}
    assert await sent(body) is body
