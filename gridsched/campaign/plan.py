"""Which runs of a study are still to be done, and in which packets."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from itertools import chain, groupby, islice
from typing import Any

from gridsched.campaign.row_table import FAILED, FINISHED
from gridsched.campaign.segments import Line, read_segment
from gridsched.campaign.store import Store
from gridsched.spec.study import Study, StudyRun

#: Longest series of runs that is kept on one worker, for the platform and tasks they share.
_SERIES = 64


class Plan:
    """The runs that are still to be done, handed out in series that share a platform.

    Parameters
    ----------
    study : Study
    store : Store
    is_meant : callable or None
        Told the axis values of a run; says whether to do it.
    retry_failed : bool
        Whether runs are to do that are stored as failed.
    is_first : bool
        Whether no other campaign works on this store; the others begin elsewhere, so that
        campaigns that run side by side meet rarely.
    """

    def __init__(
        self, study: Study, store: Store,
        is_meant: Callable[[Mapping[str, Any]], bool] | None = None,
        *, retry_failed: bool = False, is_first: bool = True,
    ) -> None:  # fmt: skip
        self._store = store
        stored = store.stored()
        self.damage = list(store.damage)
        done = {FINISHED} if retry_failed else {FINISHED, FAILED}
        self._known = {run_id for run_id, status in stored.items() if status in done}
        self._offsets = {path: path.stat().st_size for path in store.segments() if path.exists()}
        self._planned = {run.run_id for run in study.scenarios(is_meant)}
        self.total = len(self._planned)
        self.found = len(self._planned & self._known)
        begin = 0 if is_first else random.randrange(max(1, self.total))
        runs = study.scenarios(is_meant)
        if begin:
            runs = chain(islice(study.scenarios(is_meant), begin, None), islice(runs, begin))
        self._all = _series(runs)
        self._series: deque[StudyRun] = deque()
        self._again: deque[StudyRun] = deque()

    def next_packet(self, most: int) -> list[StudyRun]:
        """Return at most so many runs that share platform and tasks; none at the end."""
        packet: list[StudyRun] = []
        while not packet:
            self._series.extend(() if self._series else next(self._all, ()))
            if not self._series:
                return [self._again.popleft()] if self._again else []
            while self._series and len(packet) < most:
                run = self._series.popleft()
                if run.run_id not in self._known:
                    self._known.add(run.run_id)
                    packet.append(run)
        return packet

    def again(self, run: StudyRun) -> None:
        """Put a run back; it is done after all others."""
        self._again.append(run)

    def look_at_others(self) -> int:
        """Take note of what others have stored since; return how many runs less that leaves us."""
        number = 0
        for path in self._store.segments():
            for line, end in read_segment(path, self._offsets.get(path, 0)):
                if isinstance(line, Line):
                    self._offsets[path] = end
                    if line.run_id not in self._known:  # our own were noted when handed out
                        self._known.add(line.run_id)
                        number += line.run_id in self._planned
        return number


def _series(runs: Iterator[StudyRun]) -> Iterator[list[StudyRun]]:
    """Cut runs into series of one platform and replicate, none longer than `_SERIES`."""

    def shared(run: StudyRun) -> str:
        return run.canonical[: run.canonical.index(',"scheduler":')]

    for _, group in groupby(runs, key=shared):
        while part := list(islice(group, _SERIES)):
            yield part
