"""The HTTP cache in front of the flags: read through, and invalidated after every change.

An invalidation names the version that made it necessary. The cache refuses older copies from then on, so a reader who
has fetched the flag just before the change cannot put the old copy back.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

import httpx
import msgspec

from perdure_systems.flags.records import Flag

REQUEST_TIMEOUT_SECONDS: Final = 5.0
_WANTED: Final = (httpx.codes.OK, httpx.codes.NO_CONTENT, httpx.codes.NOT_FOUND)


class CacheUnavailable(ConnectionError):  # noqa: N818 - says what is the case
    """The cache did not take an invalidation: readers may see the old flag until it does."""


class FlagCache:
    """The cache at one address."""

    def __init__(self, url: str) -> None:
        self._url = url

    async def invalidate(self, key: str, version: int) -> None:
        """Drop all copies older than this version; raises `CacheUnavailable`."""
        try:
            async with self._client() as client:
                answer = await client.delete(self._address(key), params={"version": version})
        except httpx.HTTPError as error:
            raise CacheUnavailable(f"{self._url} cannot be reached: {error or type(error).__name__}") from error
        if answer.status_code not in _WANTED:
            raise CacheUnavailable(f"{self._url} answered {answer.status_code} to the invalidation of {key!r}")

    async def read(self, key: str) -> Flag | None:
        """The copy of a flag; None if there is none, or the cache cannot be reached."""
        try:
            async with self._client() as client:
                answer = await client.get(self._address(key))
            return msgspec.json.decode(answer.content, type=Flag) if answer.status_code == httpx.codes.OK else None
        except (httpx.HTTPError, msgspec.MsgspecError):
            return None

    async def keep(self, flag: Flag) -> None:
        """Store a copy. If the cache does not accept it, only speed is lost."""
        try:
            async with self._client() as client:
                await client.put(self._address(flag.key), content=msgspec.json.encode(flag))
        except httpx.HTTPError:
            return

    def _client(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(timeout=REQUEST_TIMEOUT_SECONDS, verify=self._url.startswith("https:"))

    def _address(self, key: str) -> str:
        return f"{self._url}/flags/{quote(key, safe='')}"
