"""What a joule counts in the random events that kernels and plain loops decide."""

from __future__ import annotations

import random
from typing import Any

from gridsched.model.signals import EVEN, Signal


def random_weights(draw: random.Random) -> dict[str, Any]:
    """Return weights that change around 30 s, or in half of the events none.

    Half of them fall, so that what is too much at first may be possible later.
    """
    if draw.random() < 0.5:
        return {}
    begins = [0.0, *sorted(draw.sample(range(28, 45), draw.randint(1, 3)))]
    of_each = draw.sample((0.25, 0.5, 1.0, 2.0, 3.0), len(begins))
    if draw.random() < 0.5:
        of_each.sort(reverse=True)
    weights = [(float(begin), weight) for begin, weight in zip(begins, of_each, strict=True)]
    return {"weights": weights, "cycle": draw.choice((45.0, 50.0, 1e3))}


def weights_of(event: Any) -> Signal:
    """Return what the package has in place of an event's `weights` and `cycle`."""
    if not event.weights:
        return EVEN
    begins, weights = zip(*event.weights, strict=True)
    return Signal(begins, weights, event.cycle, 1.0)
