"""The stand-ins behind real sockets and real TLS.

`with serving(folder) as standins:` runs all four on free ports and writes the PEM files that a client needs;
`standins.environment` has the variables that lead the system to them. In a second event loop of a thread, so that a
handler that blocks is noticed.
"""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from perdure_systems.authorities.settings import Authority
from perdure_systems.authorities.standins.authority import StandIn
from perdure_systems.authorities.standins.clock import now
from perdure_systems.authorities.standins.digicert import DigiCertStandIn
from perdure_systems.authorities.standins.entrust import EntrustStandIn
from perdure_systems.authorities.standins.globalsign import GlobalSignStandIn
from perdure_systems.authorities.standins.pki import Issuer, new_client, new_root, new_server, write_private
from perdure_systems.authorities.standins.sectigo import SectigoStandIn
from perdure_systems.kit.serving import LOOPBACK, bind
from perdure_systems.kit.serving import serving as kit_serving

_LOOK_EVERY_SECONDS: Final = 0.05
_START_TIMEOUT_SECONDS: Final = 60.0


class StandIns(msgspec.Struct):
    """The four authorities, by name, and the variables that lead to them."""

    digicert: DigiCertStandIn
    sectigo: SectigoStandIn
    entrust: EntrustStandIn
    globalsign: GlobalSignStandIn
    environment: dict[str, str]

    def of(self, authority: Authority) -> StandIn:
        """The stand-in of an authority."""
        found: StandIn = getattr(self, authority.value)
        return found


@contextmanager
def serving(folder: Path) -> Iterator[StandIns]:
    """Run the four stand-ins until the block ends. `folder` gets the PEM files."""
    standins = StandIns(DigiCertStandIn(), SectigoStandIn(), EntrustStandIn(), GlobalSignStandIn(), {})
    files = _write_files(folder)
    sockets = {authority: bind(LOOPBACK, 0) for authority in Authority}
    for authority, listening in sockets.items():
        standins.environment |= _environment(standins.of(authority), listening.getsockname()[1], files, folder)
    up, stopped = threading.Event(), threading.Event()

    async def run() -> None:
        async with AsyncExitStack() as stack:
            for authority, listening in sockets.items():
                standin = standins.of(authority)
                await stack.enter_async_context(kit_serving(standin.app, listening, **_options(standin, files)))
            up.set()
            while not stopped.is_set():  # noqa: ASYNC110 - it is set by another thread
                await asyncio.sleep(_LOOK_EVERY_SECONDS)

    thread = threading.Thread(target=asyncio.run, args=(run(),), name="stand-ins", daemon=True)
    thread.start()
    try:
        if not up.wait(_START_TIMEOUT_SECONDS):
            raise RuntimeError(f"the stand-ins did not start within {_START_TIMEOUT_SECONDS:g} s")
        yield standins
    finally:
        stopped.set()
        thread.join()


class _Files(msgspec.Struct, frozen=True):
    """PEM files on both sides of the handshake."""

    server: Path
    server_key: Path
    server_roots: Path
    client: Path
    client_key: Path
    client_roots: Path


def _write_files(folder: Path) -> _Files:
    folder.mkdir(parents=True, exist_ok=True)
    tls, clients = new_root("stand-in TLS", now()), new_root("stand-in clients", now())
    server, client = new_server(tls, now()), new_client(clients, "perdure.example", now())
    return _Files(
        server=write_private(folder / "server.pem", server.pem),
        server_key=write_private(folder / "server.key", server.key_pem),
        server_roots=write_private(folder / "server-roots.pem", _root_of(server)),
        client=write_private(folder / "client.pem", client.pem),
        client_key=write_private(folder / "client.key", client.key_pem),
        client_roots=write_private(folder / "client-roots.pem", _root_of(client)),
    )


def _root_of(issuer: Issuer) -> str:
    return issuer.root.pem


def _environment(standin: StandIn, port: int, files: _Files, folder: Path) -> dict[str, str]:
    prefix = f"CERTCTL_{standin.authority.name}_"
    roots = write_private(folder / f"{standin.authority}-roots.pem", standin.root.pem)
    variables = standin.environment() | {
        f"{prefix}{'API_URL' if standin.is_mutual else 'BASE_URL'}": f"https://127.0.0.1:{port}",
        f"{prefix}SERVER_CA_PATH": str(files.server_roots),
        f"{prefix}ROOTS_PATH": str(roots),
    }
    if standin.is_mutual:
        variables |= {f"{prefix}CLIENT_CERT_PATH": str(files.client), f"{prefix}CLIENT_KEY_PATH": str(files.client_key)}
    return variables


def _options(standin: StandIn, files: _Files) -> dict[str, Any]:
    """Those of uvicorn."""
    mutual = {"ssl_ca_certs": str(files.client_roots), "ssl_cert_reqs": ssl.CERT_REQUIRED} if standin.is_mutual else {}
    return {
        "log_level": "critical",  # a refused handshake is what some tests are about
        "ssl_certfile": str(files.server),
        "ssl_keyfile": str(files.server_key),
        "timeout_graceful_shutdown": 1,
        **mutual,
    }
