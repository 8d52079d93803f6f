"""A stand-in for the model: a real HTTP server with knobs for what can go wrong.

In tests: `async with ModelStandin() as model:`. By itself: `python -m perdure_systems.pulse.standins --port 8194`.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter, deque
from contextlib import AsyncExitStack
from typing import Annotated, Final, Self

import typer
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from perdure_systems.kit.serving import LOOPBACK, bind, serving
from perdure_systems.kit.web import JsonResponse

_WORD: Final = re.compile(r"[A-Za-zÀ-ÿ]{5,}")
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+")
_TOPICS_FOUND: Final = 5


class ModelStandin:
    """Answers as the model does. The knobs may be turned at any time.

    `price` is that of 1,000 characters; `delay` are seconds before each answer; `next_answers` are status codes for the
    next requests (503, 429, 202, or 0 to hang up); `fail_every` fails every n-th request with 503. While `open` is not
    set no request is answered, or none at the path `holds`, if that is given. `asked` are the texts of all requests,
    `answered` counts the good answers.
    """

    def __init__(self, *, port: int = 0, price: float = 0.01, delay: float = 0.0, fail_every: int = 0) -> None:
        self.price, self.delay, self.fail_every = price, delay, fail_every
        self.retry_after = 30
        self.next_answers: deque[int] = deque()
        self.open = asyncio.Event()
        self.open.set()
        self.holds = ""
        self.asked: list[str] = []
        self.answered = 0
        self._listening = bind(LOOPBACK, port)
        self._stack = AsyncExitStack()

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://{LOOPBACK}:{self._listening.getsockname()[1]}"

    async def __aenter__(self) -> Self:
        routes = [
            Route("/v1/analyse", self._analyse, methods=["POST"]),
            Route("/v1/embed", self._embed, methods=["POST"]),
        ]
        self._stack.callback(self._listening.close)
        at_once = {"log_level": "critical", "timeout_graceful_shutdown": 0}  # requests that are held up are given up
        await self._stack.enter_async_context(serving(Starlette(routes=routes), self._listening, **at_once))
        return self

    async def __aexit__(self, *_: object) -> None:
        self.open.set()
        await self._stack.aclose()

    async def _analyse(self, request: Request) -> Response:
        text = (await request.json())["text"]
        refusal = await self._refusal(text, request.url.path)
        if refusal is not None:
            return refusal
        words = Counter(word.lower() for word in _WORD.findall(text))
        return JsonResponse(
            {
                "summary": _SENTENCE.split(text.strip())[0][:200],
                "topics": [word for word, _ in words.most_common(_TOPICS_FOUND)],
                "cost": round(len(text) / 1_000 * self.price, 6),
            }
        )

    async def _embed(self, request: Request) -> Response:
        return await self._refusal((await request.json())["text"], request.url.path) or JsonResponse({})

    async def _refusal(self, text: str, path: str) -> Response | None:
        self.asked.append(text)
        status = self.next_answers.popleft() if self.next_answers else 200
        if self.fail_every and len(self.asked) % self.fail_every == 0:
            status = 503
        if not self.holds or path == self.holds:
            await self.open.wait()
        await asyncio.sleep(self.delay)
        if status == 200:  # noqa: PLR2004 - OK
            self.answered += 1
            return None
        if status == 0:
            return _HangUp()
        return Response(f"the model answers {status}", status, {"Retry-After": str(self.retry_after)})


class _HangUp(Response):
    """Ends the connection in the middle of an answer."""

    def __init__(self) -> None:
        super().__init__(b"", 200, {"Content-Length": "1000"})


def main(
    port: Annotated[int, typer.Option(help="The port to listen on.")] = 8194,
    price: Annotated[float, typer.Option(help="The price of 1,000 characters.")] = 0.01,
    delay: Annotated[float, typer.Option(help="Seconds before each answer.")] = 0.5,
    fail_every: Annotated[int, typer.Option(help="Fail every n-th request; 0: none.")] = 7,
) -> None:
    """Run the stand-in for the model until Ctrl-C."""

    async def serve() -> None:
        async with ModelStandin(port=port, price=price, delay=delay, fail_every=fail_every) as standin:
            print(f"the model answers at {standin.url}", flush=True)  # noqa: T201 - a command line prints
            await asyncio.Event().wait()

    try:
        asyncio.run(serve())
    except KeyboardInterrupt:
        return


if __name__ == "__main__":
    typer.run(main)
