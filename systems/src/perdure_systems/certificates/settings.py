"""Settings under the names that the original gave them."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Final

import msgspec

from perdure import interval_from_env
from perdure_systems.kit.settings import Environment, number_from_env, text_from_env

RETRY_VARIABLE: Final = "CERTCTL_SCHEDULER_RETRY_INTERVAL"
_SECOND: Final = timedelta(seconds=1)
_MINUTE: Final = timedelta(minutes=1)
_HOUR: Final = timedelta(hours=1)


class LoopSettings(msgspec.Struct, frozen=True):
    """How often a loop ticks, how long one tick may take, and whether the first tick comes at once."""

    name: str
    variable: str
    interval: timedelta
    limit: timedelta
    at_start: bool = True


LOOPS: Final = (
    LoopSettings("renewal", "CERTCTL_SCHEDULER_RENEWAL_CHECK_INTERVAL", 1 * _HOUR, 5 * _MINUTE),
    LoopSettings("processor", "CERTCTL_SCHEDULER_JOB_PROCESSOR_INTERVAL", 30 * _SECOND, 2 * _MINUTE),
    LoopSettings("job retry", RETRY_VARIABLE, 5 * _MINUTE, 2 * _MINUTE),
    LoopSettings("reaper", "CERTCTL_JOB_TIMEOUT_INTERVAL", 10 * _MINUTE, 2 * _MINUTE),
    LoopSettings("agent health", "CERTCTL_SCHEDULER_AGENT_HEALTH_CHECK_INTERVAL", 2 * _MINUTE, 1 * _MINUTE),
    LoopSettings("notify", "CERTCTL_SCHEDULER_NOTIFICATION_PROCESS_INTERVAL", 1 * _MINUTE, 1 * _MINUTE),
    LoopSettings("notify retry", "CERTCTL_NOTIFICATION_RETRY_INTERVAL", 2 * _MINUTE, 2 * _MINUTE),
    LoopSettings("short-lived", "CERTCTL_SCHEDULER_SHORT_LIVED_INTERVAL", 30 * _SECOND, 30 * _SECOND),
    LoopSettings("network scan", "CERTCTL_NETWORK_SCAN_INTERVAL", 6 * _HOUR, 30 * _MINUTE),
    LoopSettings("cloud discovery", "CERTCTL_CLOUD_DISCOVERY_INTERVAL", 6 * _HOUR, 30 * _MINUTE),
    LoopSettings("digest", "CERTCTL_DIGEST_INTERVAL", 24 * _HOUR, 5 * _MINUTE, at_start=False),
    LoopSettings("health", "CERTCTL_HEALTH_CHECK_INTERVAL", 60 * _SECOND, 5 * _MINUTE, at_start=False),
)


def read_loops(environment: Environment | None = None) -> dict[str, LoopSettings]:
    """The loops by name, with the intervals that the environment sets; one below 1 s is refused by name."""
    return {
        loop.name: msgspec.structs.replace(
            loop, interval=interval_from_env(loop.variable, loop.interval, environment=environment)
        )
        for loop in LOOPS
    }


class Settings(msgspec.Struct, frozen=True):
    """What the environment says now."""

    max_attempts: int
    retry_interval: timedelta
    awaiting_csr: timedelta
    awaiting_approval: timedelta
    renew_before_days: int
    ca_folder: Path
    notify_channel: str
    scan_endpoints: tuple[str, ...]
    cloud_url: str


def read_settings(environment: Environment | None = None) -> Settings:
    """Read them when they are used, so that a change needs no restart of what only enqueues."""
    endpoints = text_from_env("CERTCTL_NETWORK_SCAN_ENDPOINTS", environment=environment)
    return Settings(
        max_attempts=number_from_env("CERTCTL_JOB_MAX_ATTEMPTS", 3, at_least=1, at_most=100, environment=environment),
        retry_interval=interval_from_env(RETRY_VARIABLE, "5m", environment=environment),
        awaiting_csr=interval_from_env("CERTCTL_JOB_AWAITING_CSR_TIMEOUT", "24h", environment=environment),
        awaiting_approval=interval_from_env("CERTCTL_JOB_AWAITING_APPROVAL_TIMEOUT", "168h", environment=environment),
        renew_before_days=number_from_env("CERTCTL_RENEW_BEFORE_DAYS", 30, at_least=1, environment=environment),
        ca_folder=Path(text_from_env("CERTCTL_CA_FOLDER", "certctl-ca", environment=environment)),
        notify_channel=text_from_env("CERTCTL_NOTIFY_CHANNEL", "email", environment=environment),
        scan_endpoints=tuple(part.strip() for part in endpoints.split(",") if part.strip()),
        cloud_url=text_from_env("CERTCTL_CLOUD_DISCOVERY_URL", environment=environment),
    )
