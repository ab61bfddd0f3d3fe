"""Settings of all tests."""

from __future__ import annotations

import os

from hypothesis import settings

# 'make test' asks for this: the same commit gives the same verdict each time. At a desk Hypothesis
# looks for new examples in each run.
settings.register_profile("unattended", derandomize=True, deadline=None, print_blob=True)
# 'make test-long': more of what is drawn where an example is a whole command.
settings.register_profile("wide", max_examples=400, deadline=None, print_blob=True)
if os.environ.get("CI"):
    settings.load_profile("unattended")
