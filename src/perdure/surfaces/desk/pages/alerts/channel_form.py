"""The form of a channel. No page shows its address or secret again, not even the form after an error."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from perdure.domain.alerts.channel import ENV
from perdure.errors import ArgumentError, ConflictError
from perdure.surfaces.desk.pages.forms.written import command_line
from perdure.surfaces.desk.visit import Visit

_SHOWN: Final = ("name", "allow_private")


async def save_written(visit: Visit) -> str:
    """Save the channel of the form under a new name; returns the name."""
    desk, name = visit.desk.alerts, visit.field("name").strip()
    if name in {view.name for view in await desk.channels()}:
        raise ConflictError(f"there is a channel {name!r}: delete it first, or use perdure alerts channels add")
    await desk.save_channel(
        name,
        visit.field("address").strip(),
        secret=visit.field("secret").strip() or None,
        allow_private=visit.field("allow_private") == "yes",
        why=visit.why,
    )
    return name


async def channel_form(visit: Visit, error: Exception | None = None) -> Response:
    """The form, with an error if there is one."""
    address = visit.field("address").strip()
    return await visit.page(
        "pages/alerts/channel_form.html",
        status=200 if error is None else 422,
        title="Channel",
        fields={name: visit.field(name) for name in _SHOWN} | {"address": address if address.startswith(ENV) else ""},
        cli_line=_cli(visit),
        problem="" if error is None else str(error),
        wrong=error.field if isinstance(error, ArgumentError) else "",
    )


def _cli(visit: Visit) -> str:
    """The command for a terminal: it reads a secret address from its input, and a secret from a variable."""
    address, secret = visit.field("address").strip(), visit.field("secret").strip()
    given = {
        "address": address if address.startswith(ENV) else "-" if address else f"{ENV}VARIABLE",
        "secret": secret if secret.startswith(ENV) else f"{ENV}VARIABLE" if secret else "",
        "why": visit.field("why").strip(),
    }
    line = command_line(["alerts", "channels", "add", visit.field("name").strip() or "NAME"], given)
    return f"{line} --allow-private" if visit.field("allow_private") == "yes" else line
