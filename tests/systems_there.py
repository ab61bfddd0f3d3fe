"""Which systems of gridsched/systems are there: a folder may be deleted, and the core's tests pass."""

from pathlib import Path

SYSTEMS = ("batsim", "learning", "profit", "robust", "utility", "workflows")
_FOLDER = Path(__file__).resolve().parents[1] / "gridsched" / "systems"


def is_there(name: str) -> bool:
    """Whether a system was not deleted."""
    return (_FOLDER / name).is_dir()
