"""A study: axes, replicates and claims, declared in one TOML file."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import tomli_w

from gridsched.errors import InputError, NotTrusted
from gridsched.model.prices import PriceSeries
from gridsched.model.series import SiteSeries
from gridsched.policy.base import Scheduler
from gridsched.policy.policy_files import load_policies
from gridsched.policy.registry import make_scheduler
from gridsched.runs.claims_schema import Claim
from gridsched.runs.run_filter import run_filter
from gridsched.runs.run_spec import (
    FileReference,
    RunSpec,
    SchedulerSection,
    Section,
    SectionText,
    described_run,
    path_of_file,
)
from gridsched.runs.study_axes import (
    VARIED,
    Axis,
    VariedSection,
    axis_values,
    combinations,
    exclusions,
    group_axes,
    in_running_order,
    list_axes,
)
from gridsched.runs.study_checks import check_planners, check_results
from gridsched.runs.study_claims import checked_claims, shipped_claims_file
from gridsched.runs.study_document import StudyDocument, parse_study_file, read_document, shipped_study_file
from gridsched.runs.study_inputs import InputFile, StudyInputs
from gridsched.runs.study_schedulers import CustomDefinitions, StudyScheduler, read_schedulers
from gridsched.scenario import Scenario
from gridsched.sim.client import check_policies

#: All combinations are gone through, to leave out those that are not wanted.
MAX_RUNS = 10_000_000


@dataclass(frozen=True, slots=True)
class StudyRun:
    """One run of a study.

    Attributes
    ----------
    run_id : str
        Hash of the scenario and of the version of gridsched's results.
    axes : dict
        Value of each axis, the scheduler's label and the replicate.
    spec : RunSpec
        The whole description; files are named by content.
    policies : tuple of str
        `Study.policies`.
    """

    run_id: str
    axes: dict[str, Any]
    spec: RunSpec
    policies: tuple[str, ...] = ()

    @property
    def scenario(self) -> dict[str, Any]:
        """The description as it is stored; `ScenarioMaker` makes a `Scenario` of it."""
        return self.spec.canonical()


class Study:
    """What a study file declares; make one by `from_file`, `from_text` or `shipped`.

    Parameters
    ----------
    document : StudyDocument
        The parsed file.
    inputs : mapping, optional
        The files that it names, if they do not lie beside it.
    own : CustomDefinitions, optional
        What its policies bring; they are then not imported.
    timeout_s : float, optional
        In the place of its own time-out [s].
    trust : bool
        Whether its policies and claims may be imported: Python files run as they are.

    Attributes
    ----------
    name, title, source : str
    seed, replicates : int
    planned_replicates : int
        As many as the file asks for, however many are run.
    axes : tuple of Axis
        Everything that varies, except the replicates, in running order.
    schedulers : tuple of StudyScheduler
    metrics : tuple of str
        The metrics that the report shows; where the file names none, those that are not details.
    baseline : str or None
        Label of the scheduler that the others are compared with.
    trust : bool
        Whether its own Python may be run.
    formulas : tuple of Formula
        Metrics of its own, given as expressions.
    figures : tuple of DeclaredFigure
        What the report draws instead of its usual figures.
    report_where : dict
        Axis -> values of the runs that the report's tables and figures, and the claims, are of.
    timeout_s : float or None
        Wall time after which a run, or the import of its policies, is ended [s].
    files : StudyInputs
        The files that it reads, and those of which it does without.
    own : CustomDefinitions or None
        What its policies bring, if it has any.
    is_imported : bool
        Whether its policies were imported, as its runs and metrics of rows of its own need.

    Raises
    ------
    NotTrusted
        If it has policies that would have to be imported, or a file beside it has claims, and they
        are not trusted.
    InputError
        If it contradicts itself, or a file that it names cannot be read.
    """

    def __init__(
        self,
        document: StudyDocument,
        inputs: Mapping[str, InputFile] | None = None,
        own: CustomDefinitions | None = None,
        timeout_s: float | None = None,
        *,
        trust: bool = False,
    ) -> None:
        self.document = document
        content = document.content
        self.name, self.title, self.source = content.name, content.title, content.source
        self.seed, self.replicates = content.seed, content.replicates
        self.planned_replicates = content.replicates
        self.timeout_s = content.timeout_s if timeout_s is None else timeout_s
        self.files = StudyInputs(document, inputs)
        self.own, self.is_imported, self.trust = own, own is None, trust
        self._claims_file = self._find_claims()
        self.schedulers = self._read_schedulers(trust, is_from_store=inputs is not None)
        groups = tuple(group_axes(document))
        self.axes = in_running_order((*groups, *list_axes(document, groups), _scheduler_axis(self.schedulers)))
        self._excluded = exclusions(document, self.axes)
        self._is_wanted = self._only()
        results = check_results(document, self.axes, self.schedulers)
        self.metrics, self.baseline = results.metrics, results.baseline
        self.figures, self.formulas = results.figures, results.formulas
        self._numbers = results.numbers
        self.report_where = results.where
        if (combined := self._n_combined()) > MAX_RUNS:
            raise InputError(
                f"{document.path}: the axes and replicates have {combined:,} combinations; at most "
                f"{MAX_RUNS:,} are allowed. Split it into several studies."
            )
        self._sections = [VariedSection(document, self.axes, self.files, section) for section in VARIED]
        if self.n_runs == 0:
            if self.files.absent:
                absent = ", ".join(self.files.absent)
                where = "neither beside the study nor in the working folder"
                document.refuse(("optional",), f"leaves no run: {where} are {absent}.")
            document.refuse(("only" if content.only else "exclude",), "leaves no run.")
        if self.is_imported:
            check_planners(document, self.axes, self.schedulers, self._chosen)

    def _find_claims(self) -> Path | None:
        """Return the file of its claims: its own, or a shipped study's."""
        name = self.document.content.claims
        if name.endswith(".py"):
            return self.files.file(("claims",), name).path
        return shipped_claims_file(self.document) if name else None

    def _not_trusted(self, files: Sequence[InputFile]) -> NotTrusted:
        own = ", ".join(str(each.path) for each in files)
        return NotTrusted(
            f"{self.document.path}: the study runs Python of its own: {own}. Look at it; --trust, or "
            "Study.from_file(path, trust=True), then runs it."
        )

    @property
    def has_trusted_claims(self) -> bool:
        """Whether its claims are those of a study that comes with gridsched, or may be run; or it has none."""
        return self.trust or not self.document.content.claims.endswith(".py")

    @cached_property
    def claims(self) -> tuple[Claim, ...]:
        """The claims of the paper, on the runs that it has.

        Raises
        ------
        NotTrusted
            If they are Python of its own that is not trusted.
        InputError
            If they name what the study does not have.
        """
        if self._claims_file is None:
            return ()
        if not self.has_trusted_claims:
            raise self._not_trusted([self.inputs[self.document.content.claims]])
        if (own := self.inputs.get(self.document.content.claims)) is not None:
            own.checked()
        claims = checked_claims(self._claims_file, self._numbers, self.axes, self.schedulers)
        return tuple(each for each in claims if self._has_runs(each)) if self.files.absent else claims

    def check_claims(self) -> None:
        """Look whether the claims can be judged; raises as `claims` does."""
        _ = self.claims

    def _read_schedulers(self, trust: bool, *, is_from_store: bool) -> tuple[StudyScheduler, ...]:
        """Return the schedulers; import the policies, unless it is known what they bring."""
        names = self.document.content.policies
        files = [self.files.file(("policies",), name) for name in names]
        if self.own is not None:
            self.own.declare_metrics()
            return self.own.schedulers
        # a store's claims are run when they are asked for
        ours = [] if self.has_trusted_claims or is_from_store else [self.inputs[self.document.content.claims]]
        if (files or ours) and not trust:
            raise self._not_trusted([*files, *ours])
        policies = [file.checked() for file in files]
        check_policies(policies, self.timeout_s)
        schedulers = read_schedulers(self.document, load_policies(policies))
        self.own = CustomDefinitions.of(schedulers, policies) if policies else None
        return schedulers

    @property
    def inputs(self) -> Mapping[str, InputFile]:
        """Files it reads, by the name in the study file."""
        return self.files.files

    @property
    def policies(self) -> tuple[str, ...]:
        """SHA-256 of the files that register schedulers, metrics and figures of its own."""
        return tuple(self.inputs[name].sha256 for name in self.document.content.policies)

    def programs(self) -> list[Scheduler]:
        """Return the schedulers that are other programs."""
        return [make_scheduler(each.id, each.parameters) for each in self.schedulers if each.traits.external]

    # ------------------------------------------------------------------ making one

    @classmethod
    def from_file(cls, path: str | Path, timeout_s: float | None = None, *, trust: bool = False) -> Study:
        """Read a study file; files it names are looked for beside it.

        Parameters
        ----------
        path : str or Path
        timeout_s : float, optional
            In the place of its own time-out [s].
        trust : bool
            Whether Python files that it names may be imported.

        Raises
        ------
        NotTrusted
            If it names some, and they are not trusted.
        InputError
            Naming file, line and key.
        """
        return cls(read_document(Path(path)), timeout_s=timeout_s, trust=trust)

    @classmethod
    def from_text(cls, text: str, path: str | Path = "study.toml", *, trust: bool = False) -> Study:
        """Read a study from the text of a file that would lie at `path`; see `from_file`."""
        return cls(parse_study_file(text, str(path)), trust=trust)

    @classmethod
    def shipped(cls, name: str, timeout_s: float | None = None) -> Study:
        """Return a study that comes with gridsched; the time-out is as for `from_file`.

        Raises
        ------
        InputError
            If there is none of that name.
        """
        return cls.from_file(shipped_study_file(name), timeout_s, trust=True)

    @classmethod
    def find(cls, name: str, timeout_s: float | None = None, *, trust: bool = False) -> Study:
        """Return the study of a file, or the shipped one of that name; see `from_file`."""
        path = Path(name)
        is_there = path.exists() and not path.is_dir()  # a folder of a shipped study's name hides none
        if path.suffix == ".toml" or is_there or path.name != name:
            return cls.from_file(path, timeout_s, trust=trust)
        return cls.shipped(name, timeout_s)

    def with_replicates(self, replicates: int) -> Study:
        """Return the same study with another number of replicates.

        Raises
        ------
        InputError
            If it is less than 1.
        """
        if replicates < 1:
            raise InputError(f"replicates is {replicates}; it must be at least 1.")
        content = self.document.content.model_copy(update={"replicates": replicates})
        own = None if self.is_imported else self.own
        document = replace(self.document, content=content)
        study = Study(document, dict(self.inputs), own, self.timeout_s, trust=self.trust)
        study.planned_replicates = self.planned_replicates
        return study

    # ------------------------------------------------------------------ its runs

    @cached_property
    def n_runs(self) -> int:
        """Number of runs."""
        if self._is_wanted is not None or self.files.absent:
            return sum(1 for _ in self._chosen(None))
        if not self._excluded:
            return self._n_combined()
        kept = sum(not self._is_excluded(levels) for levels in combinations(self.axes))
        return kept * self.replicates

    def _n_combined(self) -> int:
        """Return the number of runs if none were excluded."""
        return math.prod(len(axis.values) for axis in self.axes) * self.replicates

    @property
    def axis_names(self) -> tuple[str, ...]:
        """Names of the axes, ``replicate`` last."""
        return (*(axis.name for axis in self.axes), "replicate")

    def scenarios(self, is_meant: Callable[[Mapping[str, Any]], bool] | None = None) -> Iterator[StudyRun]:
        """Yield the runs, one replicate after the other, schedulers changing fastest.

        Parameters
        ----------
        is_meant : callable, optional
            Called with the axis values of a run; returns whether to yield it (see `run_filter`).
        """
        names = [axis.name for axis in self.axes]
        schedulers = [SectionText.of(self._scheduler_section(each)) for each in self.schedulers]
        at, policies = names.index("scheduler"), self.policies
        for levels, axes in self._chosen(is_meant):
            sections = {each.name: each.of(levels) for each in self._sections}
            sections["scheduler"] = schedulers[levels[at]]
            run_id, spec = described_run(sections, self.seed, axes["replicate"])
            yield StudyRun(run_id, axes, spec, policies)

    def sections(self) -> Iterator[RunSpec]:
        """Yield a run of each platform, workload and settings, also of those that are left out, to read their files."""
        scheduler = SchedulerSection(id="wq")
        at = [axis.name for axis in self.axes].index("scheduler")
        for levels in combinations(self.axes):
            if levels[at] or any(each.lacks(levels) for each in self._sections):
                continue
            parts: dict[str, Any] = {each.name: each.of(levels).section for each in self._sections}
            yield RunSpec.model_construct(**parts, scheduler=scheduler, seed=self.seed, replicate=0)

    def _chosen(
        self, is_meant: Callable[[Mapping[str, Any]], bool] | None
    ) -> Iterator[tuple[tuple[int, ...], dict[str, Any]]]:
        """Yield levels and axis values of the runs, in order."""
        for replicate in range(self.replicates):
            for levels in combinations(self.axes):
                if self._excluded and self._is_excluded(levels):
                    continue
                if self.files.absent and any(each.lacks(levels) for each in self._sections):
                    continue
                axes = {axis.name: axis.values[k] for axis, k in zip(self.axes, levels, strict=True)}
                axes["replicate"] = replicate
                if all(each is None or each(axes) for each in (self._is_wanted, is_meant)):
                    yield levels, axes

    def _only(self) -> Callable[[Mapping[str, Any]], bool] | None:
        """Return the runs that the key ``only`` selects; None without it."""
        text = self.document.content.only
        if text is None:
            return None
        try:
            is_wanted = run_filter(text, self.axis_names, "is")
            for axes in combinations(self.axes):  # shows what cannot be compared
                is_wanted({a.name: a.values[k] for a, k in zip(self.axes, axes, strict=True)} | {"replicate": 0})
        except InputError as error:
            self.document.refuse(("only",), str(error))
        return is_wanted

    def _is_excluded(self, levels: tuple[int, ...]) -> bool:
        values = {axis.name: axis.values[k] for axis, k in zip(self.axes, levels, strict=True)}
        return any(all(values[name] in wanted for name, wanted in rule.items()) for rule in self._excluded)

    def _has_runs(self, claim: Claim) -> bool:
        """Whether any run remains of those that a claim chooses."""
        values_of = {axis.name: axis.values for axis in self.axes}
        own = axis_values(self.document, ("claims",), claim.ours.where, values_of)
        where = {**self.report_where, **own}
        return any(all(axes[name] in values for name, values in where.items()) for _, axes in self._chosen(None))

    def _scheduler_section(self, scheduler: StudyScheduler) -> SchedulerSection:
        policy = None
        if scheduler.policy is not None:
            policy = FileReference(**self.inputs[self._policy_key(scheduler.policy)].reference)
        return SchedulerSection(id=scheduler.id, parameters=dict(scheduler.parameters), policy=policy)

    def _policy_key(self, name: str) -> str:
        for key in self.document.content.policies:
            if Path(key).name == name:
                return key
        raise InputError(f"{self.document.path}: a scheduler is of {name!r}, which is not one of its policies.")


def _scheduler_axis(schedulers: tuple[StudyScheduler, ...]) -> Axis:
    labels = tuple(each.label for each in schedulers)
    return Axis("scheduler", labels, ({},) * len(labels), tuple(each.path for each in schedulers))


def study_text(scenario: Scenario, name: str) -> str:
    """Return a study file that holds one run alone.

    Parameters
    ----------
    scenario : Scenario
        Its platform, workload and scheduler are files and an id.
    name : str
        Of the study.

    Raises
    ------
    InputError
        If a part of it is an object, which no file can name.
    """
    spec, objects = RunSpec.of(scenario), ("types", "window_s", "run_times", "estimates")
    parts = {"platform": spec.platform, "tasks": spec.workload, "scheduler": scenario.scheduler}
    objects_in_it = [part for part, value in parts.items() if not isinstance(value, Section | str)]
    objects_in_it += [part for part in objects if getattr(scenario, part) is not None]
    settings = spec.settings.model_dump(exclude_defaults=True, warnings=False)
    objects_in_it += [key for key, value in settings.items() if isinstance(value, PriceSeries | SiteSeries)]
    if objects_in_it:
        raise InputError(f"{name}: a study names files and ids, and {objects_in_it[0]} is an object.")
    content: dict[str, Any] = {"name": name, "seed": scenario.seed, **settings}
    if scenario.timeout_s is not None:
        content["timeout_s"] = scenario.timeout_s
    if scenario.replicate:
        content |= {"replicates": scenario.replicate + 1, "only": f"replicate == {scenario.replicate}"}
    for part, section in (("platform", spec.platform), ("workload", spec.workload)):
        content[part] = section.model_dump(exclude_unset=True, exclude_none=True)
    for key, file in spec.files():
        part, _, name_there = key.partition(".")
        path = str(Path(path_of_file(file, {})).resolve())
        (content if part == "settings" else content[part])[name_there] = path
    content["schedulers"] = [{"id": scenario.scheduler, **scenario.parameters}]
    return tomli_w.dumps(content)
