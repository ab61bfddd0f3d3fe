"""A study file as it is written: its keys, their types, what they mean."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeVar

import tomli_w
from pydantic import BaseModel, BeforeValidator, Field, ValidationError

from gridsched.errors import InputError, did_you_mean
from gridsched.files.input_files import parse_toml, read_text
from gridsched.files.output_files import is_file_name
from gridsched.model.records import NAME, by_gravity, gravest, key_name, keys_of, place_of, problem_of, shown_value
from gridsched.plugins import Plugin, Table, source_of
from gridsched.policy.policy_files import named_file
from gridsched.renamed import with_new_names
from gridsched.runs.claims_schema import DeclaredFigure, ExpressionOrText, Readings, Report
from gridsched.runs.run_spec import Section, Settings, members_of, with_tuples
from gridsched.scenario import MAX_TIMEOUT_S
from gridsched.workloads.traces.trace_options import TraceOptions

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

Model = TypeVar("Model", bound=BaseModel)
#: Keys and indices that lead to a value.
KeyPath = tuple[str | int, ...]
#: Where the keys of studies are listed.
DOCUMENT = "docs/campaigns.md"
#: Of a paper's number, as sources of studies have it.
_DIGITS = 3
#: Complaints beside the first.
_MOST_SHOWN = 4
#: Lists of tables that a study changes entry by entry, and the key that identifies their entries.
_NAMED_ENTRIES = {"figures": "name"}


def _claims_file(given: Any) -> Any:
    if isinstance(given, tuple):
        raise ValueError(
            "it should be the name of a Python file with the study's claims (docs/study_reports.md, 'Claims')"
        )
    return given


class Content(Section):
    """The keys of a study file beside those of `Settings`; their descriptions are the reference."""

    name: str = Field(pattern=NAME, description="Name of the study.")
    extends: str | None = Field(
        default=None,
        description="A study that comes with gridsched, or a `.toml` file beside this one, which "
        "extends none itself: its values hold unless this file sets others. A table is "
        "changed key by key, `figures` by their `name`; new ones among these are appended, and "
        "any other value replaces the old one.",
    )
    title: str = Field(default="", description="Subject of the study, in a line.")
    source: str = Field(default="", description="The publication that it follows.")
    seed: int = Field(
        default=0,
        ge=0,
        lt=2**63,
        description="Each replicate draws its own platform, tasks and scheduler's random numbers "
        "from it; all schedulers of a replicate meet the same platform and tasks.",
    )
    replicates: int = Field(
        default=1, ge=1, le=1_000_000, description=("Number of times that everything is sampled again.")
    )
    policies: tuple[str, ...] = Field(
        default=(),
        description="Python files with schedulers of your own, called by the names of their "
        "classes, or by what they `register`, and with metrics and figures of your own; they are "
        "copied into the store, and a changed file makes their runs new ones.",
    )
    optional: tuple[str, ...] = Field(
        default=(),
        description="Input files that may be absent, such as logs that you fetch yourself: gridsched looks for "
        "them beside the study, then in the working folder; without one, the runs and claims that need "
        "it are left out, with a warning.",
    )
    platform: Any = Field(
        default_factory=dict,
        description="A SimGrid file, or a `generator` with its keys (see below); none if the workload's generator "
        "also makes the platform. A [trace](traces.md) needs none.",
    )
    workload: Any = Field(
        default_factory=dict,
        description="A workload file (with `files` for the table of input files; with "
        f"`{', '.join(keys_of(TraceOptions))}` for a [trace](traces.md)), or a `generator` with its keys (see below).",
    )
    schedulers: Any = Field(
        description="Ids, `FILE.py[:CLASS]`, or tables with such an `id`, parameters and, if "
        "wanted, a `label`; a list of a parameter's values makes one scheduler of each."
    )
    group: dict[str, dict[str, dict[str, Any]]] = Field(
        default_factory=dict,
        description="`[group.NAME.LEVEL]`: keys that vary together; each level of the group sets them all.",
    )
    exclude: tuple[dict[str, Any], ...] = Field(
        default=(),
        description="Combinations to leave out: axis = value or values; a run that matches all of one is left out.",
    )
    only: str | None = Field(
        default=None,
        description="An expression as for `--only`, the replicate among its axes: the runs that the study consists "
        'of. `driver = ["reference", "simgrid"]` with `only = "driver == \'reference\' or replicate == '
        '0"` also runs one replicate of everything on SimGrid.',
    )
    metrics: tuple[str, ...] = Field(
        default=(),
        description="Metrics that the report shows; default: about a dozen. Some follow from stored rows, so a "
        "finished campaign has them without a new run: `energy_delay_js`, and for bags of tasks the "
        "[bounds](bounds.md) `makespan_bound_s`, `energy_bound_j` and the distances from them, "
        "`makespan_above_bound`, `energy_above_bound`, and with `fixed_` before `bound` those of "
        "schedulers that leave power states alone.",
    )
    expressions: dict[str, ExpressionOrText] = Field(
        default_factory=dict,
        description='Metrics of your own, computed from stored rows: `NAME = "EXPRESSION"` over '
        "numbers and metrics (also those above it) with `+ - * / **`, `abs`, `sqrt`, `exp`, `log`, "
        '`min`, `max`; `{ formula, unit, better, meaning }` specifies more. `ed2p = "energy_j * '
        'makespan_s ** 2"`.',
    )
    baseline: str | None = Field(
        default=None, description="The scheduler that the others are compared with; default: the first one."
    )
    timeout_s: float | None = Field(
        default=None,
        gt=0,
        le=MAX_TIMEOUT_S,
        description="Wall time after which a run is ended and counts as failed [s].",
    )
    claims: Annotated[str, BeforeValidator(_claims_file)] = Field(
        default="",
        description="The claims of the paper: a [Python file](#claims) beside this one, which is copied into the store "
        "and run only if it is trusted, or the name of a study that comes with gridsched, for its claims.",
    )
    readings: Readings | None = Field(default=None, description="Axes that are readings of a paper.")
    report: Report = Field(
        default=Report(),
        description="The runs that tables, figures and claims use, for example so that no mean mixes the two drivers.",
    )
    figures: tuple[DeclaredFigure, ...] = Field(
        default=(),
        description=(
            "Figures that the report draws instead of its usual ones ([kinds](study_reports.md#declared-figures))."
        ),
    )


@dataclass(frozen=True)
class StudyDocument:
    """A parsed study file.

    Attributes
    ----------
    path : str
        The file, for messages.
    text : str
        Its text, with what it extends: it needs no other study file.
    content : Content
    settings : dict
        The keys of `Settings`, unchecked: lists may be axes.
    parent : str or None
        The file that it extends.
    """

    path: str
    text: str
    content: Content
    settings: dict[str, Any]
    parent: str | None = None

    def refuse(self, path: KeyPath, problem: str) -> NoReturn:
        """Raise the `InputError` about the key at `path`."""
        raise InputError(f"{_label(self.path, self.parent)}: {key_name(path)} {problem}")

    def check(self, model: type[Model], values: Mapping[str, Any], source: Callable[[str], KeyPath]) -> Model:
        """Return `values` as a `model`.

        Parameters
        ----------
        model : type
        values : mapping
        source : callable
            ``source(key)`` returns the path in the file that a key's value comes from.
        """
        try:
            return model.model_validate(values)
        except ValidationError as error:
            first = gravest(error)
            location = place_of(first, values) or ("",)
            path = (*source(str(location[0])), *location[1:])
            self.refuse(path, _problem(first, model))


def parse_document(text: str, path: str) -> StudyDocument:
    """Parse the text of a study that needs no other files, as a store keeps it; keys may have former names.

    Raises
    ------
    InputError
        Naming file and key.
    """
    document = _document(with_new_names(parse_toml(text, path)), text, path)
    if document.content.extends is not None:
        document.refuse(("extends",), "is not allowed in a study that must not extend another.")
    return document


def parse_study_file(text: str, path: str) -> StudyDocument:
    """Parse the text of a study file, and read the study that it extends.

    Raises
    ------
    InputError
        Naming file and key.
    """
    keys = parse_toml(text, path)
    if "extends" not in keys:
        return _document(keys, text, path)
    parent = str(_parent_file(keys.pop("extends"), path))
    inherited = parse_toml(read_text(parent), parent)
    if "extends" in inherited:
        raise InputError(
            f"{path}: extends is {parent}, which extends another study itself; one that extends none is allowed."
        )
    keys = _changed(inherited, keys)
    return _document(keys, tomli_w.dumps(keys), path, parent)


def read_document(path: Path) -> StudyDocument:
    """Read a study file; see `parse_study_file`."""
    return parse_study_file(read_text(path), str(path))


def shipped_study_files() -> Mapping[str, Path]:
    """Return the files of the studies that come with gridsched, then those of plugins, by name."""
    core = Path(str(resources.files("gridsched") / "reproduction" / "studies"))
    return Table("study", _studies_of, _study_files(core))


def shipped_study_file(name: str) -> Path:
    """Return the file of a study that comes with gridsched or a plugin.

    Raises
    ------
    InputError
        If there is none of that name.
    """
    files = shipped_study_files()
    if name not in files:
        if hint := _of_paper(name, files) or did_you_mean(name, files):
            raise InputError(f"No study {name!r}. {hint}Or give a file.")
        raise InputError(
            f"No study {name!r}. Give a file, or one that comes with gridsched or a plugin: {', '.join(files)}."
        )
    return files[name]


def _of_paper(name: str, files: Mapping[str, Path]) -> str:
    """Return a sentence with the studies of a paper, by their ``source``, for the number of one; else an empty text."""
    number = name.lower().removeprefix("paper").strip()
    if not (number.isascii() and number.isdecimal() and len(number) <= _DIGITS):
        return ""
    source = re.compile(rf'^source = "Paper {number.zfill(_DIGITS)}\b', re.MULTILINE)
    found = [study for study, file in files.items() if file.is_file() and source.search(read_text(file))]
    return f"Studies of paper {number.zfill(_DIGITS)}: {', '.join(found)}. " if found else ""


def _studies_of(plugin: Plugin) -> Iterator[tuple[str, Path]]:
    """Yield the study files of a plugin by name."""
    if plugin.studies:
        yield from _study_files(source_of(plugin.studies).parent).items()


def _study_files(folder: Path) -> dict[str, Path]:
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def _parent_file(name: Any, path: str) -> Path:
    """Return the file that a study at `path` extends."""
    if not isinstance(name, str) or not is_file_name(name):
        raise InputError(
            f"{path}: extends is {shown_value(name)}; the name of a study that comes with "
            "gridsched, or of a .toml file beside this one is allowed."
        )
    if name.endswith(".toml"):
        return Path(path).parent / name
    try:
        return shipped_study_file(name)
    except InputError as error:
        raise InputError(f"{path}: extends: {error}") from None


def _changed(inherited: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """Return the keys of a study with those of another that changes them."""
    keys = {**inherited, **own}
    for key in inherited.keys() & own.keys():
        before, after = inherited[key], own[key]
        if isinstance(before, dict) and isinstance(after, dict):
            keys[key] = {**before, **after}
        elif key in _NAMED_ENTRIES and isinstance(before, list) and isinstance(after, list):
            keys[key] = _changed_entries(before, after, _NAMED_ENTRIES[key])
    return keys


def _changed_entries(inherited: list[Any], own: list[Any], name: str) -> list[Any]:
    names = [entry.get(name) if isinstance(entry, dict) else None for entry in (*inherited, *own)]
    if not all(isinstance(each, str) for each in names):
        return own  # the check of the keys reports what is wrong
    entries = list(inherited)
    places = {entry[name]: place for place, entry in enumerate(inherited)}
    for entry in own:
        place = places.pop(entry[name], None)
        if place is None:  # so is a name's second entry, which is then refused as usual
            entries.append(entry)
        else:
            entries[place] = {**entries[place], **entry}
    return entries


def _document(keys: dict[str, Any], text: str, path: str, parent: str | None = None) -> StudyDocument:
    """Return the content of a study, checked key by key."""
    keys = with_tuples(keys)
    settings = {key: keys.pop(key) for key in list(keys) if key in Settings.model_fields}
    try:
        content = Content.model_validate(keys)
    except ValidationError as error:
        first, *others = by_gravity(error)
        told = [f"{key_name(place_of(first, keys))} {_problem(first, Content, extra=tuple(Settings.model_fields))}"]
        told += [f"{key_name(place_of(each, keys))} {problem_of(each)}" for each in others[:_MOST_SHOWN]]
        more = [f"{len(others) - _MOST_SHOWN} more."] if len(others) > _MOST_SHOWN else []
        raise InputError(f"{_label(path, parent)}: {' Then: '.join([*told, *more])}") from None
    policies = tuple(dict.fromkeys((*content.policies, *_scheduler_files(content.schedulers))))
    content = content.model_copy(update={"policies": policies})
    return StudyDocument(path, text, content, settings, parent)


def _label(path: str, parent: str | None) -> str:
    """Return how messages call a study file; indices count the entries that it takes over."""
    return path if parent is None else f"{path} (which extends {parent})"


def _scheduler_files(schedulers: Any) -> Iterator[str]:
    """Yield the Python files by which a study names schedulers."""
    for entry in schedulers if isinstance(schedulers, tuple) else (schedulers,):
        id = entry.get("id") if isinstance(entry, dict) else entry
        named = named_file(id) if isinstance(id, str) else None
        if named is not None:
            yield named[0]


def _problem(error: ErrorDetails, model: type[BaseModel], extra: tuple[str, ...] = ()) -> str:
    fields = _model_at(model, error["loc"]).model_fields
    known = (*fields, *(extra if fields is model.model_fields else ()))
    return problem_of(error, known, DOCUMENT)


def _model_at(model: type[BaseModel], location: tuple[str | int, ...]) -> type[BaseModel]:
    """Return the model that the last key of a location belongs to."""
    for part in location[:-1]:
        if part in model.model_fields:
            members = members_of(model.model_fields[str(part)].annotation)
            models = (each for each in members if isinstance(each, type))
            model = next((each for each in models if issubclass(each, BaseModel)), model)
    return model
