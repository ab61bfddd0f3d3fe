"""Campaigns on a Dask cluster: the same rows as here, also when a worker dies."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
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


@contextlib.contextmanager
def running(folder: Path, workers: int, *security: str) -> Iterator[tuple[str, list[subprocess.Popen]]]:
    """Run a scheduler with workers on this machine: address and processes."""
    folder.mkdir()
    file = folder / "scheduler.json"
    words = ["--no-dashboard", *security]
    address = ["--port", "0", "--host", "127.0.0.1", "--scheduler-file", str(file)]
    parts = [start(folder, "dask_scheduler", *address, *words, *(["--protocol", "tls"] if security else []))]
    try:
        deadline = time.monotonic() + 300
        while not file.exists():
            assert time.monotonic() < deadline, (folder / "dask.log").read_text()
            time.sleep(0.05)
        worker = ["dask_worker", "--scheduler-file", str(file), "--no-nanny", "--nthreads", "1", *words]
        parts += [start(folder, *worker) for _ in range(workers)]
        yield json.loads(file.read_text())["address"], parts
    finally:
        for part in parts:
            part.kill()
            part.wait()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[str, list[subprocess.Popen]]]:
    """A scheduler with two workers."""
    with running(tmp_path / "cluster", 2) as parts:
        yield parts


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


def test_a_cluster_without_workers_is_told(tmp_path: Path):
    """It says so once, waits, and ends with exit status 2; what is stored is safe."""
    path = write_study(tmp_path)
    with running(tmp_path / "cluster", 0) as (address, _):
        words = ["run", path, "--store", tmp_path / "s", "--dask", address, "--dask-wait-s", "2", "--quiet"]
        status, _, err = outcome(command(*words))
    assert status == 2
    told, ended = err.strip().splitlines()
    assert "no worker" in told
    assert "no worker for 2 s" in ended
    assert "--dask-wait-s" in told


def test_a_scheduler_that_is_gone_is_told(tmp_path: Path):
    """Killed in mid-campaign and not started again: a line, then exit status 2; stored runs stay."""
    path, store = write_study(tmp_path, replicates=40), tmp_path / "store"
    with running(tmp_path / "cluster", 1) as (address, parts):
        words = ["run", path, "--store", store, "--dask", address, "--dask-wait-s", "3", "--quiet"]
        process = command(*words)
        deadline = time.monotonic() + 300
        while sum(each.stat().st_size for each in store.glob("segments/*")) < 5_000:
            assert time.monotonic() < deadline
            time.sleep(0.005)
        for part in parts:
            part.kill()
        status, _, err = outcome(process)
    assert (status, "Traceback" in err) == (2, False), err
    assert all("no Dask scheduler answers" in line for line in err.strip().splitlines())
    assert set(Store.open(store).stored().values()) == {"finished"}


@pytest.mark.skipif(shutil.which("openssl") is None, reason="certificates are made by openssl, which is not installed")
def test_a_cluster_over_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """With the certificates named in Dask's configuration the address is tls://; without them nobody answers."""
    certificate, key = tmp_path / "cluster.pem", tmp_path / "key.pem"
    words = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"]
    subprocess.run(
        ["openssl", *words, "-keyout", key, "-out", certificate], check=True, capture_output=True, cwd=tmp_path
    )
    security = ["--tls-ca-file", str(certificate), "--tls-cert", str(certificate), "--tls-key", str(key)]
    path, store = write_study(tmp_path), tmp_path / "store"
    with running(tmp_path / "cluster", 1, *security) as (address, _):
        assert address.startswith("tls://")
        status, _, err = outcome(command("run", path, "--store", store, "--dask", address, "--quiet"))
        assert (status, err.count("\n")) == (2, 1)
        tls = "DASK_DISTRIBUTED__COMM__TLS__"
        monkeypatch.setenv(f"{tls}CA_FILE", str(certificate))
        monkeypatch.setenv(f"{tls}CLIENT__CERT", str(certificate))
        monkeypatch.setenv(f"{tls}CLIENT__KEY", str(key))
        status, _, err = outcome(command("run", path, "--store", store, "--dask", address, "--quiet"))
    assert status == 0, err
    assert set(Store.open(store).stored().values()) == {"finished"}
