"""Linear programs of a bag of typed tasks: fronts of makespan and energy, plans of whole tasks.

They need SciPy, the extra ``lp``.
"""

from gridsched.optimize.pareto_front import exact_front
from gridsched.optimize.recovery import earnings, recover
from gridsched.optimize.typed_bag import typed_bag

__all__ = ["earnings", "exact_front", "recover", "typed_bag"]
