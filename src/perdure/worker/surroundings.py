"""What all parts of a worker share."""

from __future__ import annotations

from msgspec import Struct

from perdure.clock import Clock
from perdure.events import Emitter
from perdure.hooks.hooks import NO_HOOKS, Hooks
from perdure.kinds.kind import Registry
from perdure.storage.port import Store
from perdure.worker.settings import WorkerSettings


class Surroundings(Struct, frozen=True, kw_only=True, eq=False):
    """The open store, the known kinds, the settings, the emitter, the clock, and the app's hooks."""

    store: Store
    kinds: Registry
    settings: WorkerSettings
    emitter: Emitter
    clock: Clock
    hooks: Hooks = NO_HOOKS
