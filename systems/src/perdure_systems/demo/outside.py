"""The world outside, as the demo needs it: flaky, slow, and on this machine."""

from __future__ import annotations

import asyncio
import socket
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final, Self

from perdure_systems.audits.standins import Outside as AuditedWorld
from perdure_systems.authorities.standins import StandIns as Authorities
from perdure_systems.authorities.standins import serving as serving_authorities
from perdure_systems.flags.standins import CacheStandIn
from perdure_systems.kit.serving import LOOPBACK
from perdure_systems.notifications.standins import StandIns as Receivers
from perdure_systems.pulse.standins import ModelStandin

ADMIN_TOKEN: Final = "demo-admin-token"  # noqa: S105 - everything of the demo listens on loopback only
DOCUMENTS: Final = Path(__file__).parent / "documents"
_ALERT_MAIL: Final = "from=flags@example.com&to=ops@example.com&tls=none"


class World:
    """All stand-ins, open while the block runs. `environment` leads the systems to them."""

    receivers: Receivers
    cache: CacheStandIn
    model: ModelStandin
    sites: AuditedWorld
    authorities: Authorities

    def __init__(self, folder: Path, url: str) -> None:
        self._folder = folder
        self._url = url
        self._stack = AsyncExitStack()
        self.refusing_page = ""
        self.environment: dict[str, str] = {}

    async def __aenter__(self) -> Self:
        try:
            await self._open()
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def _open(self) -> None:
        enter = self._stack.enter_async_context
        self.receivers = await enter(Receivers())
        self.cache = await enter(CacheStandIn())
        self.model = await enter(ModelStandin(price=0.01, delay=0.3))
        self.sites = await enter(AuditedWorld())
        opening = asyncio.to_thread(self._stack.enter_context, serving_authorities(self._folder / "authorities"))
        self.authorities = await _to_the_end(asyncio.create_task(opening))
        closed = socket.socket()  # taken, and nothing listens: every connection is refused
        closed.bind((LOOPBACK, 0))
        self._stack.callback(closed.close)
        self.refusing_page = f"http://{LOOPBACK}:{closed.getsockname()[1]}/shop"
        self.environment = self._variables()

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    def _variables(self) -> dict[str, str]:
        folder = self._folder
        return {
            **self.receivers.environment(),
            **self.authorities.environment,
            "PERDURE_URL": self._url,
            "CERTCTL_CA_FOLDER": str(folder / "ca"),
            "CERTCTL_NOTIFY_CHANNEL": "slack",
            "FLAG_CACHE_URL": self.cache.url,
            "FLAG_ALERT_ADDRESS": f"smtp://{LOOPBACK}:{self.receivers.smtp_port}/?{_ALERT_MAIL}",
            "FLAG_ADMIN_TOKENS": f"ada:{ADMIN_TOKEN}",
            "PULSE_MODEL_URL": self.model.url,
            "PULSE_DOCUMENTS": str(DOCUMENTS),
            "PULSE_CHUNK_CHARACTERS": "400",
            "PULSE_MODEL_TIMEOUT": "30m",  # a reader may take their time while the model is silent
            "PULSE_WORKERS": "4",
            "PULSE_START_PHASE": "10s",
            "PULSE_STOP_TIMEOUT": "3s",  # the model may be silent when Ctrl-C comes
            "PULSE_DAILY_BUDGET": "0.05",
            "PULSE_WEEKLY_BUDGET": "1",
            "PULSE_MONTHLY_BUDGET": "2",
            "PULSE_ADMIN_TOKEN": ADMIN_TOKEN,
            "AUDITS_PAGESPEED_URL": self.sites.api,
            "AUDITS_STORAGE_DIR": str(folder / "audits"),
            "AUDITS_API_TOKEN": ADMIN_TOKEN,
            "AUDITS_ALLOW_PRIVATE_ADDRESSES": "true",
            "AUDITS_WEBHOOK_URL": self.sites.hook,
            "AUDITS_WEBHOOK_SECRET": "demo-secret",
        }


async def _to_the_end(task: asyncio.Task[Authorities]) -> Authorities:
    """Wait for a thread even if the caller is cancelled: what it opens has to be closed."""
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise
