"""Commands in a process that file modes stop, as root's otherwise do not."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from typing import Any

import pytest


def run_without_rights(module: str, *words: str) -> Any:
    """Run a module of the tests without root's right to write any file; the JSON document that it prints."""
    command = [sys.executable, "-m", module, *words]
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("root needs setpriv to give up its rights")
        command = ["setpriv", "--bounding-set=-dac_override", *command]
    return _document(command)


def run_on_read_only_mount(folder: str, module: str, *words: str) -> Any:
    """Run a module of the tests where this folder is mounted read-only; the JSON document that it prints."""
    mount = f'mount --bind "{folder}" "{folder}" && mount -o remount,ro,bind "{folder}" && exec "$@"'
    command = ["unshare", "--mount", "sh", "-c", mount, "sh"]
    if (
        shutil.which("unshare") is None
        or subprocess.run([*command, "true"], capture_output=True, check=False).returncode
    ):
        pytest.skip("this process may not mount a folder")
    return _document([*command, sys.executable, "-m", module, *words])


def _document(command: list[str]) -> Any:
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
