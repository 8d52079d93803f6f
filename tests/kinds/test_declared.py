"""How another process finds a kind."""

from __future__ import annotations

import gc

from msgspec.structs import replace

from perdure import App
from perdure.kinds.declared import Address, address_of, find_declared, note_declared
from perdure.kinds.kind import Kind


def a_kind() -> Kind:
    app = App("sqlite:///unused.db")

    @app.job(name="mail")
    async def send() -> None: ...

    return replace(app.kinds["mail"])


def test_a_kind_is_found_at_its_address_while_its_app_lives() -> None:
    kind = a_kind()
    address = address_of(kind)
    assert address == Address(__name__, "a_kind.<locals>.send", "mail")
    note_declared(kind)
    assert find_declared(address) is kind
    assert find_declared(replace(address, name="fax")) is None
    del kind
    gc.collect()
    assert find_declared(address) is None


def test_a_script_has_one_address_in_every_process_that_it_starts() -> None:
    kind = a_kind()
    kind.handler.__module__ = "__mp_main__"
    again = address_of(kind)
    kind.handler.__module__ = "__main__"
    assert address_of(kind) == again
