"""The model: an HTTP service that analyses a piece of text and names the price.

What its answers mean: 200 is an answer, 202 means that it is still working, 429 that the caller must wait. Neither of
the last two costs an attempt. 5xx, a broken connection and silence may pass and are retried. Any other 4xx will not
change.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus

import httpx
import msgspec

from perdure import Pause, Pending, Permanent
from perdure_systems.pulse.settings import read_settings


class ModelError(Exception):
    """A call to the model that failed and may succeed later."""


class Answer(msgspec.Struct, frozen=True):
    """What the model found, and its price."""

    summary: str
    topics: list[str]
    cost: float


class Model:
    """The client, open for as long as the workers are."""

    def __init__(self) -> None:
        self._client: httpx.AsyncClient | None = None

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Keep connections open for the block."""
        settings = read_settings()
        timeout = settings.model_timeout.total_seconds()
        async with httpx.AsyncClient(base_url=settings.model_url, timeout=timeout, trust_env=False) as client:
            self._client = client
            try:
                yield
            finally:
                self._client = None

    @property
    def is_open(self) -> bool:
        """Whether calls can be made."""
        return self._client is not None

    async def ask(self, task: str, text: str) -> Answer:
        """Analyse a text; raises ModelError, or a verdict on what the job should do."""
        response = await self._post("/v1/analyse", {"task": task, "text": text})
        try:
            return msgspec.json.decode(response.content, type=Answer)
        except msgspec.DecodeError as error:
            raise ModelError(f"AI call failed: the answer cannot be read: {error}") from None

    async def embed(self, text: str) -> None:
        """Add a paragraph to the search index, which costs nothing."""
        await self._post("/v1/embed", {"text": text})

    async def _post(self, path: str, body: dict[str, str]) -> httpx.Response:
        if self._client is None:
            raise RuntimeError("the model is not open: use it within `opened`")
        try:
            response = await self._client.post(path, json=body)
        except httpx.TimeoutException:
            raise ModelError(f"AI call failed: no answer within {self._client.timeout.read:g} s") from None
        except httpx.TransportError as error:
            raise ModelError(f"AI call failed: {type(error).__name__}: {error}") from error
        return _checked(response)


def _checked(response: httpx.Response) -> httpx.Response:
    status, wait = response.status_code, response.headers.get("Retry-After", "")
    seconds = int(wait) if wait.isascii() and wait.isdigit() else None
    if status == HTTPStatus.OK:
        return response
    if status == HTTPStatus.ACCEPTED:
        raise Pending(seconds, "the model is still at it")
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        raise Pause("rate limited: the model answered 429", 60 if seconds is None else seconds)
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        raise ModelError(f"AI call failed: the model answered {status}")
    raise Permanent(f"AI call refused: the model answered {status}: {response.text[:200]}")


model = Model()
