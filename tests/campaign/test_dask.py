"""Campaigns on a Dask cluster: the same rows as here, also when a worker dies."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from campaign_cases import ROOT, check_complete, command, outcome, write_study, write_troubled

from gridsched.campaign.store import Store
from gridsched.cli.app import main

pytest.importorskip("distributed", reason="the extra 'cluster' is not installed")


def start(folder: Path, *words: str) -> subprocess.Popen:
    """Start a part of a cluster."""
    with open(folder / "dask.log", "ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "distributed.cli." + words[0], *words[1:]],
            cwd=folder,
            stdout=log,
            stderr=log,
            process_group=0,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[str, list[subprocess.Popen]]]:
    """A scheduler with two workers on this machine: address and processes."""
    folder = tmp_path / "cluster"
    folder.mkdir()
    found = folder / "scheduler.json"
    parts = [
        start(
            folder,
            "dask_scheduler",
            "--port",
            "0",
            "--no-dashboard",
            "--host",
            "127.0.0.1",
            "--scheduler-file",
            str(found),
        )
    ]
    try:
        deadline = time.monotonic() + 300
        while not found.exists():
            assert time.monotonic() < deadline, (folder / "dask.log").read_text()
            time.sleep(0.05)
        parts += [
            start(
                folder, "dask_worker", "--scheduler-file", str(found), "--no-dashboard", "--no-nanny", "--nthreads", "1"
            )
            for _ in range(2)
        ]
        yield json.loads(found.read_text())["address"], parts
    finally:
        for part in parts:
            part.kill()
            part.wait()


def test_a_cluster_gives_the_same_rows(
    tmp_path: Path, cluster: tuple[str, list[subprocess.Popen]], undisturbed: pd.DataFrame
):
    """With a worker killed in mid-run, every run is there once and equals a local campaign's."""
    address, parts = cluster
    path, store = write_study(tmp_path, replicates=40), tmp_path / "store"
    process = command("run", path, "--store", store, "--dask", address)
    deadline = time.monotonic() + 300
    while sum(each.stat().st_size for each in store.glob("segments/*")) < 20_000:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    os.kill(parts[1].pid, signal.SIGKILL)
    status, _, err = outcome(process)
    assert status == 0, err
    check_complete(store, path, undisturbed)
    troubled = write_troubled(tmp_path, '["wq", {id = "troubled", ending = "die"}]')
    status, _, err = outcome(command("run", troubled, "--store", store, "--dask", address))
    assert status == 1
    assert "ended by signal 9 (SIGKILL)" in err


@pytest.mark.long
def test_a_scheduler_that_restarts_loses_no_run(tmp_path: Path, cluster: tuple[str, list[subprocess.Popen]]):
    """Killed and started again in mid-campaign: what it was asked for is done, not failed."""
    address, parts = cluster
    path, store = write_study(tmp_path, replicates=40), tmp_path / "store"
    process = command("run", path, "--store", store, "--dask", address)
    deadline = time.monotonic() + 300
    while sum(each.stat().st_size for each in store.glob("segments/*")) < 20_000:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    for part in parts:
        part.kill()
        part.wait()
    port = address.rpartition(":")[2]
    parts[:] = [
        start(tmp_path, "dask_scheduler", "--port", port, "--no-dashboard", "--host", "127.0.0.1"),
        start(tmp_path, "dask_worker", address, "--no-dashboard", "--no-nanny", "--nthreads", "1"),
    ]
    status, _, err = outcome(process)
    assert status == 0, err
    assert len(Store.open(store).stored()) == 160
    assert set(Store.open(store).stored().values()) == {"finished"}


def test_a_cluster_that_does_not_answer_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    """No scheduler at the address: one line, exit status 2."""
    monkeypatch.setattr("gridsched.campaign.dask_pool._CONNECT_S", 1)
    path = write_study(tmp_path)
    words = ["study", "run", str(path), "--store", str(tmp_path / "s"), "--quiet"]
    for address in ("tcp://127.0.0.1:1", "nonsense://x"):
        assert main([*words, "--dask", address]) == 2
        err = capsys.readouterr().err
        assert f"--dask {address}: no Dask scheduler answers" in err
        assert err.count("\n") == 1
