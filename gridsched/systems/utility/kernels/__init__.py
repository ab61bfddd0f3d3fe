"""Compiled inner loops of the schedulers of papers 000 and 001. Importing this package compiles nothing."""

from pathlib import Path

from gridsched.schedulers.kernels import Kernels
from gridsched.schedulers.kernels import called_once as called_once

_OWN = Kernels(Path(__file__).parent)
kernel, inner = _OWN.kernel, _OWN.inner
