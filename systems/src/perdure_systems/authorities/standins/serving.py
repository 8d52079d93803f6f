"""The stand-ins behind real sockets and real TLS.

`async with serving(folder) as standins:` runs all four on free ports and writes the PEM files that a client needs;
`standins.environment` has the variables that lead the system to them. In a second event loop of a thread, so that a
handler that blocks is noticed.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import uvicorn

from perdure_systems.authorities.settings import Authority
from perdure_systems.authorities.standins.authority import StandIn
from perdure_systems.authorities.standins.clock import now
from perdure_systems.authorities.standins.digicert import DigiCertStandIn
from perdure_systems.authorities.standins.entrust import EntrustStandIn
from perdure_systems.authorities.standins.globalsign import GlobalSignStandIn
from perdure_systems.authorities.standins.pki import Issuer, new_client, new_root, new_server, write_private
from perdure_systems.authorities.standins.sectigo import SectigoStandIn
from perdure_systems.kit.service import bind


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
    servers: list[_Server] = []
    sockets: list[socket.socket] = []
    for authority in Authority:
        standin, listening = standins.of(authority), bind("127.0.0.1", 0)
        sockets.append(listening)
        servers.append(_server(standin, files))
        standins.environment |= _environment(standin, listening.getsockname()[1], files, folder)
    thread = threading.Thread(target=_run, args=(servers, sockets), name="stand-ins", daemon=True)
    thread.start()
    try:
        for server in servers:
            server.wait_started()
        yield standins
    finally:
        for server in servers:
            server.should_exit = True
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


class _Server(uvicorn.Server):
    """A server whose start can be waited for from another thread, and which leaves signals alone."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._up = threading.Event()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Tell those who wait."""
        await super().startup(sockets)
        self._up.set()

    def wait_started(self) -> None:
        """Wait until it listens."""
        if not self._up.wait(30):
            raise RuntimeError("a stand-in did not start within 30 s")


def _server(standin: StandIn, files: _Files) -> _Server:
    mutual = {"ssl_ca_certs": str(files.client_roots), "ssl_cert_reqs": ssl.CERT_REQUIRED} if standin.is_mutual else {}
    return _Server(
        uvicorn.Config(
            standin.app,
            log_level="critical",  # a refused handshake is what some tests are about
            lifespan="off",
            ssl_certfile=str(files.server),
            ssl_keyfile=str(files.server_key),
            timeout_graceful_shutdown=1,
            **mutual,  # type: ignore[arg-type]
        )
    )


def _run(servers: list[_Server], sockets: list[socket.socket]) -> None:
    async def run() -> None:
        await asyncio.gather(*(server.serve([listening]) for server, listening in zip(servers, sockets, strict=True)))

    asyncio.run(run())
