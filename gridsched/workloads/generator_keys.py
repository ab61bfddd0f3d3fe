"""What the keys of all workload generators have in common."""

from __future__ import annotations

from abc import abstractmethod

from pydantic import BaseModel, ConfigDict

from gridsched.model.rules import Rules


class GeneratorKeys(BaseModel):
    """Keys of one kind of generator."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    kind: str


class SystemKeys(GeneratorKeys):
    """Keys of a generator whose tasks come with their platform and rules."""

    @property
    @abstractmethod
    def rules(self) -> Rules:
        """The rules of the run."""
