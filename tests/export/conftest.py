"""The reports are tested on the traces of the energy tests."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "energy"))
