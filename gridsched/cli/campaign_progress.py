"""How a campaign shows its progress: on a screen, as JSON lines, or not at all."""

from __future__ import annotations

import contextlib
import signal
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from gridsched.cli.output import warn
from gridsched.errors import counted, visible
from gridsched.files.json_files import json_line

if TYPE_CHECKING:
    from gridsched.campaign.campaign import Ended
    from gridsched.campaign.campaign import Progress as CampaignProgress

#: A terminal hears of every tick; a file or pipe, that often [s].
_PLAIN_EVERY_S = 30.0


class Quiet:
    """Reports nothing, except what is damaged in the store."""

    _last: CampaignProgress | None = None

    def __enter__(self) -> Quiet:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.end(self._last, is_interrupted=kind is not None)

    def end(self, progress: CampaignProgress | None, *, is_interrupted: bool) -> None:
        """Report the final state of the campaign, if it began."""

    def show(self, progress: CampaignProgress, ended: Ended | None) -> None:
        """Take note of the progress; the first time, of the store's damage too."""
        if self._last is None:
            warn([f"{damage}; its runs are repeated" for damage in progress.damage])
        self._last = progress


class JsonLines(Quiet):
    """One JSON object a line on standard output, for batch jobs and programs."""

    def __init__(self) -> None:
        self._reported_s = 0.0

    def show(self, progress: CampaignProgress, ended: Ended | None) -> None:
        """Tell failures at once, and the progress once a second."""
        super().show(progress, ended)
        if ended is not None and ended.error is not None:
            self._say("failed", run_id=ended.run.run_id, axes=ended.run.axes, error=ended.error)
        if time.monotonic() - self._reported_s >= 1.0:
            self._reported_s = time.monotonic()
            self._say("progress", **_numbers(progress))

    def end(self, progress: CampaignProgress | None, *, is_interrupted: bool) -> None:
        """Tell it as the last object."""
        if progress is not None:
            self._say("interrupted" if is_interrupted else "end", **_numbers(progress))

    def _say(self, event: str, **values: object) -> None:
        sys.stdout.write(f"{json_line({'event': event, **values})}\n")
        sys.stdout.flush()


def _numbers(progress: CampaignProgress) -> dict[str, object]:
    left = progress.time_left_s
    return {
        **{name: getattr(progress, name) for name in ("total", "found", "done", "failed", "followed", "running")},
        "runs_per_s": round(progress.rate, 3),
        "time_left_s": None if left is None else round(left, 1),
        "elapsed_s": round(progress.elapsed_s, 1),
    }


class Screen(Quiet):
    """A bar on a terminal; now and then a line where there is none."""

    def __init__(self, name: str) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._bar = Progress(
            TextColumn("{task.fields[study]}", markup=False),
            BarColumn(),
            TextColumn("{task.description}"),
            console=Console(stderr=True),
            disable=not self._is_terminal,
            auto_refresh=False,
            transient=True,
        )
        self._task = self._bar.add_task("", total=None, study=visible(name, breaks=False))
        self._reported_s = time.monotonic()

    def __enter__(self) -> Screen:
        self._bar.start()
        return self

    def show(self, progress: CampaignProgress, ended: Ended | None) -> None:
        """Draw the progress at every tick."""
        super().show(progress, ended)
        if ended is not None:
            return
        if self._is_terminal:
            done = progress.found + progress.done
            self._bar.update(self._task, total=progress.total, completed=done, description=_words(progress))
            self._bar.refresh()
        elif time.monotonic() - self._reported_s >= _PLAIN_EVERY_S:
            self._reported_s = time.monotonic()
            sys.stderr.write(f"{_words(progress)}\n")

    def end(self, progress: CampaignProgress | None, *, is_interrupted: bool) -> None:
        """Remove the bar and print the numbers of runs."""
        self._bar.stop()
        if progress is None:
            return
        stored = progress.found + progress.done
        text = f"{stored:,} of {progress.total:,} runs stored"
        if progress.found:
            text += f", {progress.found:,} of them before or by others"
        if progress.failed:
            text += f", {progress.failed:,} failed"
        if is_interrupted:
            text += ". The same command continues"
        sys.stderr.write(f"{text}.\n{counted(progress.done, 'run')} in {progress.elapsed_s:.1f} s.\n")
        if progress.followed:
            saved = counted(progress.followed, "run")
            sys.stderr.write(f"{saved} of these were not made: a smaller energy budget limited nothing.\n")


def _words(progress: CampaignProgress) -> str:
    left = progress.time_left_s
    rest = "-" if left is None else str(timedelta(seconds=round(left)))
    return (
        f"{progress.found + progress.done:,}/{progress.total:,} done, {progress.failed:,} failed, "
        f"{progress.running} running, {progress.rate:.1f} runs/s, {rest} left"
    )


@contextlib.contextmanager
def terminable() -> Iterator[None]:
    """End on SIGTERM, which batch systems send, as on Ctrl-C."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
