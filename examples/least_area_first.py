"""Your own queue order: the job with the least node-seconds first, but none waits forever."""

from gridsched import EasyBackfilling, QueueOrder


class LeastArea(QueueOrder):
    """Width times estimate, which shrinks to nothing within a day of waiting."""

    def keys(self, jobs):
        return jobs.width * jobs.run_time_s * (1 - jobs.waiting_s / 86_400)


class LeastAreaFirst(EasyBackfilling):
    """EASY backfilling over this order.

    Parameters
    ----------
    order, depth, estimate, reservations, dropping_threshold, cluster_choice
        As in `EasyBackfilling`; the order is the class's own.

    References
    ----------
    .. [1] An example of gridsched's documents.
    """

    def queue_order(self):
        return LeastArea()
