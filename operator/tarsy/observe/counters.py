"""What a process counts, as Prometheus reads it.

Decision: each process has one set of counters, made where it is put together and handed to whoever counts; there is no
registry of the whole program, and a name that nobody declared is an error. No label, so nothing that people write.
"""

from collections.abc import Mapping

SWEPT_RUNS = "tarsy_swept_investigations_total"

DECLARED: Mapping[str, str] = {
    SWEPT_RUNS: "Investigations that the sweep ended: nobody ran them and their time was over, or they were cancelled.",
}


class Counters:
    """Numbers that only grow, from 0 at the start of the process."""

    def __init__(self) -> None:
        self._counts = dict.fromkeys(DECLARED, 0)

    def add(self, name: str, by: int = 1) -> None:
        """Counts `by` more. Raises KeyError: nobody declared the name."""
        self._counts[name] += by

    def text(self) -> str:
        """All of them in the text format of Prometheus."""
        return "".join(
            f"# HELP {name} {DECLARED[name]}\n# TYPE {name} counter\n{name} {count}\n"
            for name, count in self._counts.items()
        )
