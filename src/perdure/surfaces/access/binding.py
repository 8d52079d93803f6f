"""The address to listen on: any but loopback needs a token, so one must exist."""

from __future__ import annotations

from msgspec.structs import replace

from perdure.errors import SettingsError
from perdure.operate.commands.tokens import has_live_token
from perdure.storage.port import Store
from perdure.surfaces.access.requests.authority import is_loopback, read_address
from perdure.surfaces.access.settings import AccessSettings


async def settings_for(host: str, settings: AccessSettings, store: Store) -> AccessSettings:
    """The settings for a server that listens on this address.

    For a loopback address they stay unchanged. Any other address requires a token: raises SettingsError if none exists.
    """
    if is_loopback(host) and not settings.requires_token:
        return settings
    if not await has_live_token(store):
        raise SettingsError(
            "host",
            f"{host} needs a token, and none has been created: run `perdure token create --name NAME --scope admin` "
            "first, or listen on 127.0.0.1",
        )
    own = () if read_address(host) or is_loopback(host) else (host,)
    return replace(settings, requires_token=True, hosts=settings.hosts + own)
