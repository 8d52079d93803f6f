"""One connector for each authority, all with the same four calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from perdure_systems.authorities.connectors.connector import Connector, Order, Placed, Reason
from perdure_systems.authorities.connectors.digicert import DigiCert
from perdure_systems.authorities.connectors.entrust import Entrust
from perdure_systems.authorities.connectors.globalsign import GlobalSign
from perdure_systems.authorities.connectors.sectigo import Sectigo
from perdure_systems.authorities.settings import Authority, read_settings
from perdure_systems.authorities.wire import WIRES, Wire

__all__ = ["Connector", "Order", "Placed", "Reason", "connector_for"]

_CONNECTORS: Final[Mapping[Authority, Callable[[Wire], Connector]]] = {
    Authority.DIGICERT: DigiCert,
    Authority.SECTIGO: Sectigo,
    Authority.ENTRUST: Entrust,
    Authority.GLOBALSIGN: GlobalSign,
}


def connector_for(authority: Authority) -> Connector:
    """The connector of an authority, with the settings as they are now; raises SettingsError."""
    return _CONNECTORS[authority](WIRES.to(read_settings(authority)))
