"""pybatsim's scheduler that switches hosts, for states that are texts as Batsim's documents say."""

from schedulers.fcfsSchedSleep import FcfsSchedSleep


class Sleeper(FcfsSchedSleep):
    """It compares states with numbers, and waits for no message after the last."""

    def onMachinePStateChanged(self, machines, pstate):
        super().onMachinePStateChanged(machines, int(pstate))
