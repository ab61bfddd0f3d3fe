"""How long data take between hosts if nothing else is sent."""

from __future__ import annotations

from dataclasses import dataclass

from gridsched.arrays import Floats
from gridsched.errors import InputError


@dataclass(frozen=True)
class Network:
    """Latency and bandwidth between each two hosts, as a transfer that shares no link finds them.

    Attributes
    ----------
    latency_s : ndarray of float64, shape (hosts, hosts)
        From the first to the second [s].
    bandwidth : ndarray of float64, shape (hosts, hosts)
        Of the narrowest link of the route [byte/s], as a lone transfer can use it.

    Raises
    ------
    InputError
        If a latency is negative or a bandwidth not positive.

    Notes
    -----
    Within a host data take no time.
    """

    latency_s: Floats
    bandwidth: Floats

    def __post_init__(self) -> None:
        if self.latency_s.shape != self.bandwidth.shape or self.latency_s.shape[0] != self.latency_s.shape[-1]:
            raise InputError(
                f"Latencies {self.latency_s.shape} and bandwidths {self.bandwidth.shape} must be two square matrices."
            )
        if not ((self.latency_s >= 0).all() and (self.bandwidth > 0).all()):
            raise InputError("Latencies must be at least 0 s, and bandwidths greater than 0 byte/s.")

    def transfer_s(self, size_bytes: float, source: int, target: int) -> float:
        """Return how long a transfer takes between two hosts [s]: latency + size / bandwidth."""
        if source == target:
            return 0.0
        return float(self.latency_s[source, target] + size_bytes / self.bandwidth[source, target])

    def from_host(self, size_bytes: float, source: int) -> Floats:
        """Return how long a transfer takes from a host to each [s], shape (hosts,)."""
        times: Floats = self.latency_s[source] + size_bytes / self.bandwidth[source]
        times[source] = 0.0
        return times
