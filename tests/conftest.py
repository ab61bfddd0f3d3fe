"""Settings of all tests."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import settings

from gridsched.engine import Controller
from gridsched.engine.dispatch import Dispatch

# a shell without job control has Ctrl-C ignored in what it starts in the background, and the
# commands that tests start and interrupt would inherit that
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# documents tell to activate .venv, and the server of runs keeps the PATH with which it started
os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"

# 'make test' asks for this: the same commit gives the same verdict each time. At a desk Hypothesis
# looks for new examples in each run.
settings.register_profile("unattended", derandomize=True, deadline=None, print_blob=True)
# 'make test-long': more of what is drawn where an example is a whole command; the same each time.
settings.register_profile("wide", max_examples=400, derandomize=True, deadline=None, print_blob=True)
if os.environ.get("CI"):
    settings.load_profile("unattended")


@pytest.fixture
def validated(monkeypatch):
    """Have each instant of each run leave what holds of every run (`Controller.validate`)."""
    step = Controller.step

    def step_and_validate(controller, now, finished):
        commands = step(controller, now, finished)
        controller.validate()
        return commands

    monkeypatch.setattr(Controller, "step", step_and_validate)


@pytest.fixture(params=["hot path", "long way"])
def both_paths(request, monkeypatch):
    """Run a test with the hot path of a common queue, and again without it."""
    if request.param == "long way":
        monkeypatch.setattr(Dispatch, "can_pass_on", property(lambda self: False))
