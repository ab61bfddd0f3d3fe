"""From the canonical scenario of a stored or planned run to a `Scenario` that can be run."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, TypeVar

from gridsched.errors import InputError
from gridsched.files.json_files import canonical_text
from gridsched.model.platform import Platform
from gridsched.model.records import as_keys, keys_of, with_keys
from gridsched.model.rules import Rules
from gridsched.model.task_types import SystemWorkload
from gridsched.model.tasks import Tasks
from gridsched.platform_io.from_table import platform_from_table
from gridsched.platform_io.recipe import PlatformRecipe
from gridsched.platform_io.tables import MachineTable, read_machine_table
from gridsched.platform_io.xml_reader import read_platform
from gridsched.platform_io.xml_writer import NetworkLinks, write_platform
from gridsched.spec.scenario import Scenario
from gridsched.spec.settings import RunSettings
from gridsched.spec.study_document import with_tuples
from gridsched.spec.study_schedulers import load_policies
from gridsched.spec.study_sections import MEASURE_SETTINGS, SYSTEM_GENERATORS
from gridsched.workloads.bag import BagOfTasks, generate_bag
from gridsched.workloads.load import read_workload
from gridsched.workloads.utility_day import UtilityDay, generate_utility_day

T = TypeVar("T")
_LINKS = tuple(field.name for field in fields(NetworkLinks))
_TABLE_KEYS = ("generator", "table", "join", "year", "seed")


class ScenarioMaker:
    """Makes scenarios; all runs of a replicate share its platform and its tasks.

    Parameters
    ----------
    inputs : mapping
        SHA-256 of a file -> where it lies.
    folder : Path
        For the SimGrid files of generated platforms; the caller removes it.
    """

    def __init__(self, inputs: Mapping[str, Path], folder: Path) -> None:
        self._inputs = inputs
        self._folder = folder
        self._platforms = _Recent(4)
        self._tables = _Recent(4)
        self._tasks = _Recent(4)
        self._systems = _Recent(2)
        self._written = 0

    def make(self, scenario: Mapping[str, Any], timeout_s: float | None = None) -> Scenario:
        """Return the `Scenario` that a canonical scenario describes.

        Parameters
        ----------
        scenario : mapping
            As `StudyRun.scenario` gives it.
        timeout_s : float, optional
            Wall time after which a SimGrid run is ended [s].

        Raises
        ------
        InputError
            If an input file is missing or contradicts the parameters.
        """
        seed, replicate = scenario["seed"], scenario["replicate"]
        scheduler = scenario["scheduler"]
        if scheduler.get("policy"):
            load_policies([self._path(scheduler["policy"])])
        settings = with_tuples(scenario["settings"])
        if settings["deployment"] is not None:
            settings["deployment"] = self._path(settings["deployment"])
        for name in MEASURE_SETTINGS:
            settings.pop(name, None)
        needs_file = settings["driver"] == "simgrid"
        if scenario["workload"].get("generator") in SYSTEM_GENERATORS:
            values = self._system(scenario["workload"], seed, replicate, needs_file)
        else:
            platform, file = self._platform(scenario["platform"], seed, replicate, needs_file)
            tasks = self._workload(scenario["workload"], seed, replicate)
            values = {"platform": platform, "platform_file": file, "tasks": tasks}
        made = Scenario(
            **values,
            scheduler=scheduler["id"],
            parameters=with_tuples(scheduler["parameters"]),
            seed=seed,
            replicate=replicate,
            timeout_s=timeout_s,
        )
        usual = as_keys(RunSettings())
        return with_keys(made, {key: each for key, each in settings.items() if each != usual[key]})

    def _path(self, reference: Mapping[str, str]) -> Path:
        path = self._inputs.get(reference["sha256"])
        if path is None:
            raise InputError(
                f"Input file {reference['name']!r} (SHA-256 {reference['sha256'][:16]}...) is not "
                "in the store."
            )
        return path

    def _platform(
        self, section: Mapping[str, Any], seed: int, replicate: int, needs_file: bool
    ) -> tuple[Platform, Path | None]:
        if "file" in section:
            path = self._path(section["file"])
            return self._platforms.get(str(path), lambda: (read_platform(path), path))
        if section.get("seed") is not None:
            seed, replicate = section["seed"], 0
        key = f"{canonical_text(section)} {seed} {replicate} {needs_file}"
        return self._platforms.get(
            key, lambda: self._generate_platform(section, seed, replicate, needs_file)
        )

    def _generate_platform(
        self, section: Mapping[str, Any], seed: int, replicate: int, needs_file: bool
    ) -> tuple[Platform, Path | None]:
        table = self._table(section)
        values = with_tuples(section)
        links = NetworkLinks(**{key: values[key] for key in _LINKS if key in values})
        others = (*_LINKS, *_TABLE_KEYS)
        recipe = PlatformRecipe(
            **{key: value for key, value in values.items() if key not in others},
            seed=seed,
            replicate=replicate,
        )
        platform = platform_from_table(table, recipe)
        return platform, self._written_platform(platform, links) if needs_file else None

    def _written_platform(self, platform: Platform, links: NetworkLinks | None = None) -> Path:
        self._written += 1
        path = self._folder / f"platform{self._written % 16}.xml"
        write_platform(platform, path, command="gridsched study run", network=links, force=True)
        return path

    def _table(self, section: Mapping[str, Any]) -> MachineTable:
        path = self._path(section["table"])
        join = self._path(section["join"]) if section.get("join") else None
        year = section.get("year")

        def read() -> MachineTable:
            table = read_machine_table(path, join=join, year=year)
            return replace(table, path=section["table"]["name"])

        return self._tables.get(f"{path} {join} {year}", read)

    def _system(
        self, section: Mapping[str, Any], seed: int, replicate: int, needs_file: bool
    ) -> dict[str, Any]:
        """Return the fields of a scenario whose workload comes with its platform.

        Runs that differ in rules alone share what is drawn.
        """
        if section.get("seed") is not None:
            seed, replicate = section["seed"], 0
        values = {
            key: str(self._path(value)) if key.endswith("_csv") else value
            for key, value in with_tuples(section).items()
            if key not in ("generator", "seed")
        }
        spec = UtilityDay(**values, seed=seed, replicate=replicate)
        drawn = {key: each for key, each in values.items() if key not in keys_of(Rules)}
        key = f"{sorted(drawn.items())} {seed} {replicate}"

        def generate() -> SystemWorkload:
            return generate_utility_day(UtilityDay(**drawn, seed=seed, replicate=replicate))

        system = self._systems.get(key, generate)
        file = None
        if needs_file:
            file = self._platforms.get(key, lambda: self._written_platform(system.platform))
        return {
            "platform": system.platform,
            "platform_file": file,
            "tasks": system.tasks,
            "types": system.types,
            "window_s": system.window_s,
            **vars(spec.rules),
        }

    def _workload(self, section: Mapping[str, Any], seed: int, replicate: int) -> Tasks:
        if "file" in section:
            path = self._path(section["file"])
            files = self._path(section["files"]) if section.get("files") else None
            return self._tasks.get(f"{path} {files}", lambda: read_workload(path, files=files))
        if section.get("seed") is not None:
            seed, replicate = section["seed"], 0
        values = {k: v for k, v in section.items() if k not in ("generator", "seed")}
        return self._tasks.get(
            f"{canonical_text(section)} {seed} {replicate}",
            lambda: generate_bag(BagOfTasks(**values, seed=seed, replicate=replicate)),
        )


class _Recent:
    """The few things made last, by key."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._kept: OrderedDict[str, Any] = OrderedDict()

    def get(self, key: str, make: Callable[[], T]) -> T:
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        made = make()
        self._kept[key] = made
        if len(self._kept) > self._size:
            self._kept.popitem(last=False)
        return made
