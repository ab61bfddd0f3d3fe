"""One quiet campaign is what all disturbed ones are compared with."""

import pandas as pd
import pytest
from campaign_cases import campaign, comparable, write_study

from gridsched.campaign.store import Store
from gridsched.runs.study import Study


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    """Rows of the small study, 40 replicates on the reference driver, from a quiet campaign."""
    folder = tmp_path_factory.mktemp("undisturbed")
    path = write_study(folder, replicates=40)
    campaign(path, folder / "store")
    return comparable(Store.open(folder / "store").rows(Study.from_file(path)))
