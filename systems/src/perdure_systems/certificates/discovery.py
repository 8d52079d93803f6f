"""Look for certificates: at TLS endpoints, and in a cloud's list."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Sequence
from datetime import datetime
from typing import Final

import httpx
import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes

from perdure_systems.certificates.records import Endpoint, Found

_ENDPOINT_TIMEOUT_SECONDS: Final = 10.0
_ENDPOINTS_AT_ONCE: Final = 20


class CloudEntry(msgspec.Struct):
    """A certificate as a cloud's secret store lists it."""

    name: str
    certificate: str


async def look_at(address: str) -> Found:
    """The certificate that an endpoint `host:port` shows; raises OSError or ValueError if it shows none."""
    host, _, port = address.rpartition(":")
    context = ssl.create_default_context()
    context.check_hostname = False  # we look at what is there, trusted or not
    context.verify_mode = ssl.CERT_NONE
    async with asyncio.timeout(_ENDPOINT_TIMEOUT_SECONDS):
        _, writer = await asyncio.open_connection(host, int(port), ssl=context, server_hostname=host)
        try:
            shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        finally:
            writer.close()
    return found_in(x509.load_der_x509_certificate(shown), f"network {address}")


async def look_at_all(addresses: Sequence[str]) -> dict[str, Found | Exception]:
    """What each endpoint shows, or why it shows nothing; a slow one does not hold up the others."""
    slots = asyncio.Semaphore(_ENDPOINTS_AT_ONCE)

    async def look(address: str) -> Found | Exception:
        async with slots:
            try:
                return await look_at(address)
            except (OSError, ValueError) as error:
                return error

    return dict(zip(addresses, await asyncio.gather(*map(look, addresses)), strict=True))


def judge(address: str, found: Found | Exception, now: datetime) -> Endpoint:
    """Whether an endpoint has answered with a certificate that is valid now."""
    if isinstance(found, Exception):
        return Endpoint(address, "unreachable", f"{type(found).__name__}: {found}", now)
    if found.not_after <= now:
        return Endpoint(address, "expired", f"{found.subject} expired at {found.not_after.isoformat()}", now)
    return Endpoint(address, "healthy", None, now)


async def list_cloud(url: str) -> list[Found]:
    """The certificates that a cloud lists: JSON, a list of names and PEM texts."""
    async with httpx.AsyncClient(timeout=30) as client:
        answer = await client.get(url)
        answer.raise_for_status()
    entries = msgspec.json.decode(answer.content, type=list[CloudEntry])
    return [
        found_in(x509.load_pem_x509_certificate(entry.certificate.encode()), f"cloud {entry.name}") for entry in entries
    ]


def found_in(certificate: x509.Certificate, source: str) -> Found:
    """What we keep of a certificate that was found."""
    return Found(
        certificate.fingerprint(hashes.SHA256()).hex(),
        source,
        certificate.subject.rfc4514_string(),
        certificate.not_valid_after_utc,
    )
