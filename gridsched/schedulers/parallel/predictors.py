"""Predictors of run times for queues of rigid jobs, in the place of what users asked for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridsched.arrays import Floats, Integers
from gridsched.errors import InputError, did_you_mean
from gridsched.policy.base import check_choice
from gridsched.policy.state import State
from gridsched.schedulers.parallel.fair_share import attribute_of
from gridsched.schedulers.wrapping import read_call

#: By how much a prediction that has passed is corrected, the first time, the second, ... [s].
CORRECTIONS_S = np.array([60, 300, 900, 1800, 3600, 7200, 18_000, 36_000, 72_000, 180_000, 360_000], dtype=np.float64)


class Predictor(ABC):
    """Base of all predictors; what one remembers during a run is set by `prepare`.

    It knows of jobs that have ended what they took, of others what was asked for.

    Attributes
    ----------
    looks : bool
        Whether the queue is looked at when a prediction has passed, too.
    """

    looks: bool = False

    def prepare(self) -> None:  # noqa: B027
        """Forget the last run."""

    def ended(self, state: State, task: int, run_time_s: float) -> None:  # noqa: B027
        """Learn how long a job ran that has just ended [s]."""

    @abstractmethod
    def predict(self, state: State, tasks: Integers, requested_s: Floats) -> Floats:
        """Return how long jobs will run [s], shape (tasks,); more than was asked for is cut."""

    def correct(self, run_time_s: float, times: int) -> float:
        """Return what is predicted in the place of a run time that has passed, for the so-manieth time [s].

        Parameters
        ----------
        run_time_s : float
            [s].
        times : int
            How often it has been corrected before.

        Returns
        -------
        float
            More than was asked for is cut.
        """
        return run_time_s + CORRECTIONS_S.item(min(times, len(CORRECTIONS_S) - 1))


class LastTwoOfUser(Predictor):
    """The mean of the last two jobs of the same user that have ended.

    Parameters
    ----------
    last : {"ended", "submitted"}
        Which two of those that have ended: that ended last, or that were submitted last.
    correction : {"steps", "request"}
        A prediction that has passed grows by `CORRECTIONS_S`, one after the other, never beyond what was
        asked for; or it becomes just that.
    looks : bool
        Whether the queue is looked at then.

    Notes
    -----
    Of users of whom fewer have ended, and of jobs without a user, what was asked for.

    References
    ----------
    .. [1] D. Tsafrir, Y. Etsion, D. G. Feitelson, "Backfilling using system-generated predictions
       rather than user runtime estimates", IEEE TPDS 18(6), 2007, doi:10.1109/TPDS.2007.70606
       (not read).
    """

    def __init__(self, last: str = "ended", correction: str = "steps", looks: bool = False) -> None:
        self.last, self.correction, self.looks = last, correction, looks

    def prepare(self) -> None:
        """Forget what has ended."""
        #: run times [s] of the last and the last but one job of each user, and what they are the last by
        self.last_s_ = np.full((0, 2), np.nan)
        self.place_ = np.full((0, 2), -1)
        self.n_ended_ = 0

    def ended(self, state: State, task: int, run_time_s: float) -> None:
        """Keep the run time, where it is one of the last two of its user [s]."""
        user = self._of_users(state).item(task)
        self.n_ended_ += 1
        if user < 0:
            return
        place = self.n_ended_ if self.last == "ended" else task
        row = int(place < self.place_[user, 0])
        if place > self.place_[user, row]:
            self.last_s_[user, row:] = [run_time_s, self.last_s_[user, 0]][: 2 - row]
            self.place_[user, row:] = [place, self.place_[user, 0]][: 2 - row]

    def correct(self, run_time_s: float, times: int) -> float:
        """Return a longer run time, by steps or at once [s]."""
        return super().correct(run_time_s, times) if self.correction == "steps" else np.inf

    def predict(self, state: State, tasks: Integers, requested_s: Floats) -> Floats:
        """Return the mean of the user's last two run times [s]."""
        users = self._of_users(state)[tasks]
        means = np.append(self.last_s_.mean(axis=1), np.nan)[users]
        return np.where(np.isnan(means), requested_s, means)

    def _of_users(self, state: State) -> Integers:
        """Return the user of each task; there is room for all of them then."""
        user = attribute_of(state, "user", "estimate = 'last_two_of_user'")
        if more := len(user.names) - len(self.last_s_):
            self.last_s_ = np.pad(self.last_s_, ((0, more), (0, 0)), constant_values=np.nan)
            self.place_ = np.pad(self.place_, ((0, more), (0, 0)), constant_values=-1)
        return user.codes


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array that cannot be written to, as kernels are compiled for those of a state."""
    array.setflags(write=False)
    return array


def for_kernels(array: NDArray[Any]) -> NDArray[Any]:
    """Return a contiguous view or copy of an array that cannot be written to.

    For each way in which the arrays of one call may lie numba would compile a kernel again.
    """
    flags = array.flags
    if flags.c_contiguous and not flags.writeable:
        return array
    return read_only(np.ascontiguousarray(array)[:])


class PredictedQueue:
    """Run times of the jobs of one run as a predictor has them, and corrected as they pass.

    Parameters
    ----------
    predictor : Predictor
    """

    def __init__(self, predictor: Predictor) -> None:
        self._predictor = predictor
        predictor.prepare()
        #: what runs: start, predicted run time [s] and number of corrections by task
        self._running: dict[int, tuple[float, float, int]] = {}
        #: when the next look is that has been asked for [s]
        self._look_s = -np.inf

    def observe(self, state: State, requested_s: Floats) -> None:
        """Tell the predictor what has ended, and correct what has passed."""
        gone = self._running.keys() - set(state.running["task"].tolist())
        lost = gone.intersection(state.mappable.tolist()) if gone else gone  # they start again
        for task in sorted(gone):
            start, _, _ = self._running.pop(task)
            if task not in lost:
                self._predictor.ended(state, task, state.now - start)
        for task, (start, run_time_s, times) in self._running.items():
            most = requested_s.item(task)
            while start + run_time_s <= state.now and run_time_s < most:
                run_time_s = min(self._predictor.correct(run_time_s, times), most)
                times += 1
            self._running[task] = start, run_time_s, times

    def ends(self, state: State) -> Floats:
        """Return the predicted end of each job that runs [s], in the order of `State.running`."""
        each = [self._running[task] for task in state.running["task"].tolist()]
        return read_only(np.array([start + length for start, length, _ in each], dtype=np.float64))

    def next_look(self, now: float) -> float | None:
        """Return when the next prediction passes, if a look is to be asked for then that was not before [s]."""
        if not self._predictor.looks:
            return None
        ends = (start + length for start, length, _ in self._running.values())
        first = min((end for end in ends if end > now), default=np.inf)
        if first == np.inf or now < self._look_s <= first:
            return None
        self._look_s = first
        return first

    def predict(self, state: State, tasks: Integers, requested_s: Floats) -> Floats:
        """Return how long waiting jobs will run [s], at most as long as was asked for."""
        predicted = self._predictor.predict(state, tasks, requested_s[tasks])
        return np.minimum(predicted, requested_s[tasks])

    def started(self, now: float, tasks: Integers, run_time_s: Floats) -> None:
        """Keep the predictions with which jobs start [s]."""
        self._running |= {
            task: (now, length, 0) for task, length in zip(tasks.tolist(), run_time_s[tasks].tolist(), strict=True)
        }


def read_predictor(owner: str, text: object) -> Predictor | None:
    """Return the predictor that a parameter names; None for what users asked for.

    Parameters
    ----------
    owner : str
        Id of the scheduler that has the parameter, for messages.
    text : object
        ``"requested"``, ``"last_two_of_user"``, or the latter with parameters of `LastTwoOfUser`, as
        ``"last_two_of_user(last='submitted')"``.

    Raises
    ------
    InputError
        If it names none.
    """
    id, parameters = read_call(owner, "estimate", text, "last_two_of_user(last='submitted')")
    check_choice(owner, "estimate", id, ["requested", "last_two_of_user"])
    legal: dict[str, tuple[Any, ...]] = {}
    if id != "requested":
        legal = {"last": ("ended", "submitted"), "correction": ("steps", "request"), "looks": (True, False)}
    for name, value in parameters.items():
        if name not in legal:
            raise InputError(
                f"Estimate {id!r} of {owner} has no parameter {name!r}. {did_you_mean(name, legal)}"
                f"Its parameters: {', '.join(legal) or 'none'}."
            )
        check_choice(f"{id} of {owner}", name, value, legal[name])
    return None if id == "requested" else LastTwoOfUser(**parameters)
