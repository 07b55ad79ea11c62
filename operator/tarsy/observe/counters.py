"""What a process counts, as Prometheus reads it.

Decision: each process has one set of counters, made where it is put together and handed to whoever counts; there is no
registry of the whole program, and a name that nobody declared is an error. No label, so nothing that people write.
"""

from collections.abc import Mapping

SWEPT_RUNS = "tarsy_swept_investigations_total"
REFUSED_TOOL_CALLS = "tarsy_refused_tool_calls_total"
HTTP_UNAUTHENTICATED = "tarsy_http_unauthenticated_requests_total"
HTTP_FORBIDDEN = "tarsy_http_forbidden_requests_total"
HTTP_UNAVAILABLE = "tarsy_http_unavailable_requests_total"
HTTP_FAILED = "tarsy_http_failed_requests_total"
INTAKE_FATES: Mapping[str, str] = {
    fate: f"tarsy_intake_{fate}_notifications_total" for fate in ("investigated", "folded", "resolved", "rejected")
}
INTAKE_UNROUTED = "tarsy_intake_unrouted_notifications_total"
INTAKE_QUEUE_FULL = "tarsy_intake_queue_full_total"

DECLARED: Mapping[str, str] = {
    SWEPT_RUNS: "Investigations that the sweep ended: nobody ran them and their time was over, or they were cancelled.",
    REFUSED_TOOL_CALLS: "Tool calls of models that were not made: a policy forbids the tool, or the tool has changed.",
    HTTP_UNAUTHENTICATED: "Requests refused with 401: no token, or one that nobody knows.",
    HTTP_FORBIDDEN: "Requests refused with 403: the caller may not.",
    HTTP_UNAVAILABLE: "Requests refused with 503: Postgres or the Kubernetes API was away.",
    HTTP_FAILED: "Requests that ended with a fault of the server.",
    **{name: f"Answers to notifications that said {fate}." for fate, name in INTAKE_FATES.items()},
    INTAKE_UNROUTED: "Notifications that no AlertRoute takes.",
    INTAKE_QUEUE_FULL: "Notifications answered with 503 because too many investigations wait.",
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
