"""Run the four stand-ins: `python -m perdure_systems.authorities.standins FOLDER [--approve-after N]`."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Annotated

import typer

from perdure_systems.authorities.settings import Authority
from perdure_systems.authorities.standins.pki import new_request
from perdure_systems.authorities.standins.serving import serving


def run(
    folder: Annotated[Path, typer.Argument(help="Gets the PEM files, authorities.env and request.pem.")],
    *,
    approve_after: Annotated[int, typer.Option(min=1, help="Issue an order at this poll, counted from 1.")] = 3,
) -> None:
    """Run the stand-ins until Ctrl-C."""
    with serving(folder) as standins:
        for authority in Authority:
            standins.of(authority).behaviour.approve_after = approve_after
        env = folder / "authorities.env"
        env.write_text("".join(f"{name}={value}\n" for name, value in standins.environment.items()))
        (folder / "request.pem").write_text(new_request("shop.example", "www.shop.example"))
        print(f"✿ four authorities on this machine; variables are in {env}", flush=True)  # noqa: T201 - a program prints
        signal.sigwait({signal.SIGINT, signal.SIGTERM})


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})  # before threads, which inherit it
    typer.run(run)
