"""Keys that generators have in common: all, and those with systems."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from gridsched.errors import InputError
from gridsched.model.limits import MAX_ENTRIES
from gridsched.model.rules import Rules
from gridsched.model.task_types import CountedBag

#: More tasks (expected) or machines than this are refused: they would not fit into memory.
MAX_TASKS = 10_000_000
MAX_MACHINES = 100_000


class GeneratorKeys(BaseModel):
    """Keys of one kind of generator."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True)

    kind: str

    def changed(self, keys: Iterable[str]) -> list[str]:
        """Return which of some keys have another value than the default, sorted."""
        fields = type(self).model_fields
        return sorted(key for key in keys if getattr(self, key) != fields[key].default)

    def check_files(
        self,
        *,
        together: Sequence[str] = (),
        needed: Mapping[str, Iterable[str]] | None = None,
        replaced: Mapping[str, set[str]] | None = None,
    ) -> None:
        """Refuse keys that miss a file, or have no effect beside one.

        Parameters
        ----------
        together : sequence of str
            Files that go together; without effect beside a file that replaces some of them.
        needed : mapping
            File -> keys that have no effect without it.
        replaced : mapping
            File -> keys that it takes the place of.

        Raises
        ------
        InputError
            Naming the key, and the file.
        """
        replaced = {file: keys for file, keys in (replaced or {}).items() if getattr(self, file) is not None}
        missing = [file for file in together if getattr(self, file) is None]
        is_replaced = any(keys.intersection(together) for keys in replaced.values())
        if 0 < len(missing) < len(together) and not is_replaced:
            raise InputError(f"{missing[0]} is missing; {', '.join(together)} go together.")
        for file, keys in (needed or {}).items():
            useless = self.changed(keys)
            if getattr(self, file) is None and useless:
                raise InputError(f"{useless[0]} has no effect without {file}; give it, too.")
        for file, keys in replaced.items():
            if useless := self.changed(keys):
                raise InputError(f"{useless[0]} has no effect beside {file}; remove one of them.")

    def check_entries(self, keys: str, entries: int) -> None:
        """Refuse more entries of a table than are drawn; `keys` say how many."""
        if entries > MAX_ENTRIES:
            raise InputError(f"{keys} give {entries:,} entries; at most {MAX_ENTRIES:,} are drawn.")


def keys_between(model: type[GeneratorKeys], first: str, last: str) -> set[str]:
    """Return two keys of a generator and those that it declares between them."""
    names = list(model.model_fields)
    return set(names[names.index(first) : names.index(last) + 1])


class WrittenKeys(GeneratorKeys):
    """Keys of a generator whose workload has files of its own, where others are written as bags."""

    @abstractmethod
    def written(self, output: Path) -> list[Path]:
        """Return the files that `write` writes.

        Raises
        ------
        InputError
            If `output` has an ending that they do not have.
        """

    @abstractmethod
    def write(self, output: Path, *, force: bool) -> list[str]:
        """Generate the workload, write its files, and return in words what was written; see `written`."""


class SystemKeys(WrittenKeys):
    """Keys of a generator whose tasks come with their platform and rules."""

    @property
    @abstractmethod
    def rules(self) -> Rules:
        """The rules of the run."""

    def written(self, output: Path) -> list[Path]:
        """Return the files that `write` writes.

        Raises
        ------
        InputError
            If no files hold such a system, or those that do end otherwise.
        """
        raise InputError(
            f"A workload of kind {self.kind!r}: the tasks have no utility functions to tell of. It goes as "
            "--workload where tasks are run, and 'gridsched optimize' tells of its machines."
        )

    def write(self, output: Path, *, force: bool) -> list[str]:
        """Generate the workload, write its files, and return in words what was written; see `written`."""
        raise NotImplementedError  # `written` has refused

    def counted_bag(self) -> CountedBag | None:
        """Return the tasks by their counts, for plans that list none of them; None where they must be generated."""
        return None
