"""Limits how many runs are parked, and for how long."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ParkingLimits:
    """Limits of parked runs.

    Args:
        total: maximum parked runs of the whole installation.
        of_namespace: maximum parked runs of one namespace; None: only the total limits them.
        seconds: time for which a run may be parked in all.
    """

    total: int = 1000
    of_namespace: int | None = None
    seconds: float = 24 * 3600.0

    def full(self, total: int, of_namespace: int) -> str | None:
        """Returns why no further run may be parked, as a sentence; None: one may.

        Args:
            total: parked runs.
            of_namespace: those of the namespace of the run.
        """
        if total >= self.total:
            return f"{total} runs are parked, which is the maximum (execution.maxParked)."
        if self.of_namespace is not None and of_namespace >= self.of_namespace:
            why = "which is the maximum (execution.maxParkedPerNamespace)"
            return f"{of_namespace} runs of this namespace are parked, {why}."
        return None
