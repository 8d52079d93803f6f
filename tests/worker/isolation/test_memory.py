"""The memory of this process is known."""

from __future__ import annotations

from perdure.worker.isolation.memory import resident_bytes

MIB = 1024 * 1024


def test_the_memory_of_this_process_is_known() -> None:
    assert 5 * MIB < resident_bytes() < 4096 * MIB
