"""`perdure worker --metrics-port`, as real processes."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.signals.metrics.exposed import Exposed
from tests.surfaces.cli.workers.test_worker import Processes, open_shop
from tests.surfaces.conftest import run_cli

from perdure.surfaces.cli.exits import Exit

PATIENCE = 60.0
ADDRESS = re.compile(r'"address": "(http://127\.0\.0\.1:\d+/metrics)"')


def until(done: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not done():
        assert process.poll() is None, "the process ended"
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.05)


def addresses(processes: Processes, process: subprocess.Popen[str]) -> list[str]:
    return ADDRESS.findall(processes.log(process))


def scraped(address: str) -> Exposed:
    with urllib.request.urlopen(address, timeout=PATIENCE) as answer:  # noqa: S310 - loopback
        return Exposed(answer.read().decode())


@pytest.mark.slow
def test_each_process_has_a_port_and_one_of_them_exports_the_cluster(tmp_path: Path) -> None:
    """Sums over instances are right: the cluster is exported once, and each worker counts its own attempts."""
    url = f"sqlite:///{tmp_path / 'jobs.db'}"
    with open_shop(tmp_path, url) as processes:
        words = ("--processes", "2", "--metrics-port", "0", "--metrics-cluster", "--json", "--concurrency", "1")
        process = processes.start("worker", "shop:app", *words)
        until(lambda: len(set(addresses(processes, process))) == 2, process)
        targets = sorted(set(addresses(processes, process)))
        code = "import shop; shop.app.enqueue_many_sync(shop.greet.call('x') for _ in range(20)); shop.app.close_sync()"
        subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env={"PERDURE_URL": url}, check=True)

        def done() -> bool:
            seen = [scraped(target) for target in targets]
            return sum(one.total("perdure_attempts_total", outcome="succeeded") for one in seen) == 20

        until(done, process)
        seen = [scraped(target) for target in targets]
        assert [one.value("perdure_cluster_up") for one in seen].count(1) == 1
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == Exit.OK


@pytest.mark.slow
def test_a_worker_without_statistics_has_nothing_to_export(tmp_path: Path) -> None:
    (tmp_path / "quiet_shop.py").write_text(
        "from perdure import App, WorkerSettings\napp = App(worker=WorkerSettings(statistics=0))\n"
    )
    words = (sys.executable, "-m", "perdure", "worker", "quiet_shop:app", "--metrics-port", "0")
    url = {"PERDURE_URL": f"sqlite:///{tmp_path}/a.db"}
    found = subprocess.run(words, cwd=tmp_path, env=url, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert found.returncode == Exit.USAGE
    assert "worker.statistics is 0" in found.stderr


def test_without_the_extra_the_command_says_what_to_install(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['prometheus_client'] = None\n"
        "sys.argv = ['perdure', 'metrics', 'show']\n"
        "from perdure.surfaces.cli import main; main()"
    )
    found = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert found.returncode == Exit.USAGE
    assert "pip install 'perdure[metrics]'" in found.stderr


def test_show_prints_the_cluster_of_a_database(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'jobs.db'}"
    assert run_cli("migrate", "--url", url).code == 0
    answer = run_cli("metrics", "show", "--url", url)
    assert Exposed(answer.out).value("perdure_cluster_up") == 1
    refused = run_cli("metrics", "show", "--url", f"sqlite:///{tmp_path / 'none.db'}")
    assert refused.code != 0
    assert "none.db" in refused.err
