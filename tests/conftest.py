"""Settings of all tests."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import settings
from systems_there import SYSTEMS, is_there

from gridsched.campaign.store import Store
from gridsched.drivers.reference import CHECK_INVARIANTS
from gridsched.engine.dispatch import Dispatch
from gridsched.metrics import METRICS
from gridsched.policy import registry
from gridsched.runs import figure_kinds
from gridsched.runs.study import Study
from gridsched.sim import client

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"

# a shell without job control has Ctrl-C ignored in what it starts in the background, and the
# commands that tests start and interrupt would inherit that
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# documents tell to activate .venv, and the server of runs keeps the PATH with which it started
os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"

# 'make test' asks for this: the same commit gives the same verdict each time. At a desk Hypothesis
# looks for new examples in each run.
settings.register_profile("unattended", derandomize=True, deadline=None, print_blob=True)
# 'make test-long': more of what is drawn where an example is a whole command; the same each time.
settings.register_profile("wide", max_examples=400, derandomize=True, deadline=None, print_blob=True)
if os.environ.get("CI"):
    settings.load_profile("unattended")


#: Folders and files all of whose runs are validated at each instant, on both drivers; in others it would cost
#: more than they do.
VALIDATED = {"engine", "schedulers", "sim", "test_agreement.py", "test_common_checks.py"}


@pytest.fixture(autouse=True, scope="module")
def _validated(request: pytest.FixtureRequest) -> None:
    """Have each instant of each run leave what holds of every run (`Controller.validate`)."""
    asks = request.path.relative_to(Path(__file__).parent).parts[0] in VALIDATED
    if asks != (CHECK_INVARIANTS in os.environ):
        if asks:
            os.environ[CHECK_INVARIANTS] = "1"
        else:
            del os.environ[CHECK_INVARIANTS]
        client.server().close()  # it keeps the environment in which it started


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what needs a system that is not there: its folder may be deleted."""
    for marker in item.iter_markers("systems"):
        for name in marker.args or SYSTEMS:
            if not is_there(name):
                pytest.skip(f"it needs the system {name!r}")


@pytest.fixture(autouse=True)
def _registered_by_gridsched() -> Iterator[None]:
    """Forget the schedulers, metrics, kinds of figures and policies' modules of a test."""
    tables = registry._ENTRIES, METRICS, figure_kinds._table()
    entries, modules = [dict(table) for table in tables], set(sys.modules)
    yield
    for table, before in zip(tables, entries, strict=True):
        table.clear()
        table.update(before)
    for name in set(sys.modules) - modules:
        if hasattr(sys.modules[name], "__gridsched_policy__"):
            del sys.modules[name]


@pytest.fixture(scope="session")
def small_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with the runs of the small study that is made by hand: two failed, one missing."""
    from small_study import make_store

    return make_store(tmp_path_factory.mktemp("small") / "store")


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    """Rows of the small study of a campaign, 40 replicates on the reference driver, that nothing disturbed."""
    from campaign_cases import campaign, comparable, write_study

    folder = tmp_path_factory.mktemp("undisturbed")
    path = write_study(folder, replicates=40)
    campaign(path, folder / "store")
    return comparable(Store.open(folder / "store").rows(Study.from_file(path)))


@pytest.fixture
def shared_data() -> Callable[[str], Path]:
    """Return a file of the folder 'shared' beside the checkout; skips where it is absent."""

    def find(name: str) -> Path:
        path = DATA / name
        if not path.exists():
            pytest.skip(f"shared/data/{name} is not beside the checkout")
        return path

    return find


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str | bytes], Path]:
    """Write a file into the test's folder and return its path."""

    def write_file(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write_file


@pytest.fixture(params=["hot path", "long way"])
def both_paths(request, monkeypatch):
    """Run a test with the hot path of a common queue, and again without it."""
    if request.param == "long way":
        monkeypatch.setattr(Dispatch, "can_start_successor", property(lambda self: False))
