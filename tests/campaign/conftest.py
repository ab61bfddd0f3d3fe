"""Example EX-A comes from the tests of the schedulers; a study's own policies stay in its test.

One quiet campaign is what all disturbed ones are compared with.
"""

from collections.abc import Iterator

import pandas as pd
import pytest
from campaign_cases import campaign, comparable, write_study

from gridsched.campaign.store import Store
from gridsched.policy import registry
from gridsched.runs.study import Study


@pytest.fixture(autouse=True)
def _registry_as_it_was() -> Iterator[None]:
    """Forget the schedulers that a test registers: later tests go through all there are."""
    before = dict(registry._ENTRIES)
    yield
    registry._ENTRIES.clear()
    registry._ENTRIES.update(before)


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    """Rows of the small study, 40 replicates on the reference driver, from a quiet campaign."""
    folder = tmp_path_factory.mktemp("undisturbed")
    path = write_study(folder, replicates=40)
    campaign(path, folder / "store")
    return comparable(Store.open(folder / "store").rows(Study.from_file(path)))
