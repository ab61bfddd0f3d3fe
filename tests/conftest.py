"""Settings of all tests."""

from __future__ import annotations

import os
import signal

from hypothesis import settings

# a shell without job control has Ctrl-C ignored in what it starts in the background, and the
# commands that tests start and interrupt would inherit that
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# 'make test' asks for this: the same commit gives the same verdict each time. At a desk Hypothesis
# looks for new examples in each run.
settings.register_profile("unattended", derandomize=True, deadline=None, print_blob=True)
# 'make test-long': more of what is drawn where an example is a whole command; the same each time.
settings.register_profile(
    "wide", max_examples=400, derandomize=True, deadline=None, print_blob=True
)
if os.environ.get("CI"):
    settings.load_profile("unattended")
