"""A study file as it is written: its keys, their types, what they mean."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from pydantic import BaseModel, Field, ValidationError

from gridsched.errors import InputError
from gridsched.files.input_files import parse_toml, read_text
from gridsched.model.records import complaint, gravest, key_name
from gridsched.policy.policy_files import named_file
from gridsched.spec.claims_schema import (
    Claim,
    DeclaredFigure,
    Explanation,
    ExpressionOrText,
    Readings,
    Report,
)
from gridsched.spec.run_spec import (
    NAME,
    Section,
    Settings,
    members_of,
    with_tuples,
)
from gridsched.spec.settings import MAX_TIMEOUT_S

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

Model = TypeVar("Model", bound=BaseModel)
#: Keys and indices that lead to a value.
KeyPath = tuple[str | int, ...]


class Content(Section):
    """The keys of a study file beside those of `Settings`; their descriptions are the reference."""

    name: str = Field(pattern=NAME, description="What the study is called.")
    title: str = Field(default="", description="What it is about, in a line.")
    source: str = Field(default="", description="The publication that it follows.")
    seed: int = Field(
        default=0,
        ge=0,
        lt=2**63,
        description="Each replicate draws its own platform, tasks and scheduler's random numbers "
        "from it; all schedulers of a replicate meet the same platform and tasks.",
    )
    replicates: int = Field(
        default=1, ge=1, le=1_000_000, description="How often everything is drawn anew."
    )
    policies: tuple[str, ...] = Field(
        default=(),
        description="Python files with schedulers of your own, called by the names of their "
        "classes, or by what they `register`, and with metrics and figures of your own; they are "
        "copied into the store, and a changed file makes their runs new ones.",
    )
    optional: tuple[str, ...] = Field(
        default=(),
        description="Input files that may be absent, as logs that you fetch yourself: they are "
        "looked for beside the study, then in the working folder; without one, the runs and "
        "claims that need it are left out, with a warning.",
    )
    platform: Any = Field(
        default_factory=dict,
        description="A SimGrid file, or a `generator` with its keys (see below); none where the "
        "workload's generator makes the platform, too. A [trace](traces.md) needs none.",
    )
    workload: Any = Field(
        default_factory=dict,
        description="A workload file (with `files` for the table of input files; with "
        "`nodes_from, procs_per_node, nodes, boot, shutdown` for a [trace](traces.md)), or a "
        "`generator` with its keys (see below).",
    )
    schedulers: Any = Field(
        description="Ids, `FILE.py[:CLASS]`, or tables with such an `id`, parameters and, if "
        "wanted, a `label`; a list of a parameter's values makes one scheduler of each.",
    )
    group: dict[str, dict[str, dict[str, Any]]] = Field(
        default_factory=dict,
        description="`[group.NAME.LEVEL]`: keys that vary together; each level of the group sets "
        "them all.",
    )
    exclude: tuple[dict[str, Any], ...] = Field(
        default=(),
        description="Combinations to leave out: axis = value or values; a run that matches all of "
        "one is left out.",
    )
    only: str | None = Field(
        default=None,
        description="An expression as for `--only`, the replicate among its axes: the runs that "
        'the study consists of. `driver = ["reference", "simgrid"]` with `only = "driver == '
        "'reference' or replicate == 0\"` does one replicate of everything on SimGrid as well.",
    )
    metrics: tuple[str, ...] = Field(
        default=(),
        description="What the report shows; default: about a dozen. Some follow from stored rows, "
        "so that a finished campaign has them without a new run: `energy_delay_js`, and for bags "
        "of tasks the "
        "[bounds](bounds.md) `makespan_bound_s`, `energy_bound_j` and the distances from them, "
        "`makespan_above_bound`, `energy_above_bound`, and with `fixed_` before `bound` those of "
        "schedulers that leave power states alone.",
    )
    expressions: dict[str, ExpressionOrText] = Field(
        default_factory=dict,
        description='Metrics of your own, computed from stored rows: `NAME = "EXPRESSION"` over '
        "numbers and metrics (also those above it) with `+ - * / **`, `abs`, `sqrt`, `exp`, `log`, "
        '`min`, `max`; `{ formula, unit, better, meaning }` says more. `ed2p = "energy_j * '
        'makespan_s ** 2"`.',
    )
    baseline: str | None = Field(
        default=None, description="The scheduler that the others are compared with."
    )
    timeout_s: float | None = Field(
        default=None,
        gt=0,
        le=MAX_TIMEOUT_S,
        description="Wall time after which a run is ended and counts as failed [s].",
    )
    claims: tuple[Claim, ...] = Field(default=(), description="What the paper says.")
    explanations: tuple[Explanation, ...] = Field(
        default=(), description="Why claims are missed, and the runs that show it."
    )
    readings: Readings | None = Field(
        default=None, description="Axes that stand for readings of a paper."
    )
    report: Report = Field(
        default=Report(),
        description="The runs that tables, figures and claims are of, so that for instance the "
        "two drivers are in no mean together.",
    )
    figures: tuple[DeclaredFigure, ...] = Field(
        default=(), description="What the report draws instead of its usual figures; see below."
    )


@dataclass(frozen=True)
class StudyDocument:
    """A parsed study file.

    Attributes
    ----------
    path : str
        The file, for messages.
    text : str
        Its text.
    content : Content
    settings : dict
        The keys of `Settings`, unchecked: lists may be axes.
    """

    path: str
    text: str
    content: Content
    settings: dict[str, Any]

    def refuse(self, path: KeyPath, complaint: str) -> NoReturn:
        """Raise the `InputError` about the key at `path`."""
        raise InputError(f"{self.path}: {key_name(path)} {complaint}")

    def check(
        self, model: type[Model], values: Mapping[str, Any], source: Callable[[str], KeyPath]
    ) -> Model:
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
            location = first["loc"] or ("",)
            path = (*source(str(location[0])), *location[1:])
            self.refuse(path, _complaint(first, model))


def parse_document(text: str, path: str) -> StudyDocument:
    """Parse the text of a study file.

    Raises
    ------
    InputError
        Naming file and key.
    """
    raw = with_tuples(parse_toml(text, path))
    settings = {key: raw.pop(key) for key in list(raw) if key in Settings.model_fields}
    try:
        content = Content.model_validate(raw)
    except ValidationError as error:
        first = gravest(error)
        complaint = _complaint(first, Content, extra=tuple(Settings.model_fields))
        raise InputError(f"{path}: {key_name(first['loc'])} {complaint}") from None
    policies = tuple(dict.fromkeys((*content.policies, *_scheduler_files(content.schedulers))))
    content = content.model_copy(update={"policies": policies})
    return StudyDocument(path, text, content, settings)


def _scheduler_files(schedulers: Any) -> Iterator[str]:
    """Yield the Python files by which a study names schedulers."""
    for entry in schedulers if isinstance(schedulers, tuple) else (schedulers,):
        id = entry.get("id") if isinstance(entry, dict) else entry
        named = named_file(id) if isinstance(id, str) else None
        if named is not None:
            yield named[0]


def read_document(path: Path) -> StudyDocument:
    """Read a study file; see `parse_document`."""
    return parse_document(read_text(path), str(path))


def _complaint(error: ErrorDetails, model: type[BaseModel], extra: tuple[str, ...] = ()) -> str:
    fields = _model_at(model, error["loc"]).model_fields
    return complaint(error, (*fields, *(extra if fields is model.model_fields else ())))


def _model_at(model: type[BaseModel], location: tuple[str | int, ...]) -> type[BaseModel]:
    """Return the model that the last key of a location belongs to."""
    for part in location[:-1]:
        if part in model.model_fields:
            members = members_of(model.model_fields[str(part)].annotation)
            models = (each for each in members if isinstance(each, type))
            model = next((each for each in models if issubclass(each, BaseModel)), model)
    return model
