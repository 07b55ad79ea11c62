"""Counts in how many cases of Cloud-OpsBench the rules find the fault (`tarsy bench cloud-opsbench DIR`).

A signal is right when its rule stands for the cause of the case and it names the faulty object. Some rules stand for
more than one cause of the data set (a quota of CPU, of memory, of pods), so the figures are a little easier to reach
than those of models, which must name the cause itself.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tarsy.evidence.rules.signal import Signal
from tarsy.evidence.rules.table import find_signals
from tarsy.evidence.snapshot import ObjectKey
from tarsy.evidence.topology import Topology
from tarsy_dev.opsbench.cases import Case, NoCases, Unreadable, find_cases, read_case

CAUSES: Mapping[str, tuple[str, ...]] = {
    "namespace_cpu_quota_exceeded": ("quota-exceeded",),
    "namespace_memory_quota_exceeded": ("quota-exceeded",),
    "namespace_pod_quota_exceeded": ("quota-exceeded",),
    "namespace_storage_quota_exceeded": ("quota-exceeded",),
    "missing_service_account": ("service-account-missing",),
    "node_cordon_mismatch": ("scheduling-unschedulable-nodes", "node-cordoned"),
    "node_affinity_mismatch": ("scheduling-node-selector",),
    "node_selector_mismatch": ("scheduling-node-selector",),
    "pod_anti_affinity_conflict": ("scheduling-pod-affinity",),
    "taint_toleration_mismatch": ("scheduling-taint",),
    "cpu_capacity_mismatch": ("scheduling-resources",),
    "memory_capacity_mismatch": ("scheduling-resources",),
    "pvc_storage_class_mismatch": ("claim-class-missing", "claim-provisioning-fails"),
    "pv_binding_occupied": ("scheduling-unbound-claim", "scheduling-volume-affinity"),
    "pvc_selector_mismatch": ("scheduling-unbound-claim",),
    "pvc_capacity_mismatch": ("scheduling-unbound-claim",),
    "pvc_access_mode_mismatch": ("scheduling-unbound-claim",),
    "volume_mount_permission_denied": ("volume-not-mounted",),
    "missing_secret_binding": ("container-config-missing", "volume-source-missing"),
    "incorrect_image_reference": ("image-not-found", "image-name-invalid", "image-pull-denied"),
    "image_registry_dns_failure": ("image-registry-unreachable",),
    "missing_image_pull_secret": ("image-pull-denied",),
    "container_memory_limit_too_low": ("container-out-of-memory",),
    "liveness_probe_incorrect_protocol": ("probe-liveness-fails",),
    "liveness_probe_incorrect_port": ("probe-liveness-fails", "probe-port-unknown"),
    "liveness_probe_incorrect_timing": ("probe-liveness-fails",),
    "readiness_probe_incorrect_protocol": ("probe-readiness-fails",),
    "readiness_probe_incorrect_port": ("probe-readiness-fails", "probe-port-unknown"),
    "deployment_zero_replicas": ("service-scaled-to-zero",),
    "service_selector_mismatch": ("service-selects-nothing",),
    "service_port_mapping_mismatch": ("service-target-port",),
    "kubelet_unavailable": ("node-not-ready",),
    "containerd_unavailable": ("node-not-ready",),
}
"""Rules that stand for a cause of the data set; logs, latency and code decide on the others."""

_SHOWN = 5
_FIRST, _THIRD = 1, 3


@dataclass(frozen=True, slots=True)
class Found:
    """A case and the place of its first right signal from 1; None: no signal is right."""

    case: Case
    place: int | None
    signals: Sequence[Signal]


def place_of(case: Case) -> Found:
    """Applies the rules to a case."""
    signals = find_signals(case.snapshot, Topology(case.snapshot))
    rules = CAUSES.get(case.cause.lower(), ())
    right = (place for place, one in enumerate(signals, 1) if one.rule in rules and _names(one, case.object))
    return Found(case, next(right, None), signals)


def _names(signal: Signal, fault: str) -> bool:
    """Returns whether a signal names the faulty object; `app/NAME` is any object of that name or of its pods."""
    kind, _, name = fault.lower().rpartition("/")
    return any(_is(key, kind, name) for key in signal.objects)


def _is(key: ObjectKey, kind: str, name: str) -> bool:
    if kind == "namespace":
        return key.namespace == name
    if kind in ("app", "service", "pod", ""):
        return key.name == name or key.name.startswith(f"{name}-")
    return (key.kind.lower(), key.name) == (kind, name)


def measure_rules(folder: Path, limit: int | None = None) -> int:
    """Prints how often the rules find the fault; returns the exit status: 2 where nothing could be measured.

    Args:
        folder: a checkout of Cloud-OpsBench, or a part of it.
        limit: maximum number of cases; None: all.
    """
    console = Console()
    try:
        folders = find_cases(folder)[:limit]
    except NoCases as error:
        console.print(f"cloud-opsbench: {error}", style="red", markup=False, soft_wrap=True)
        return 2
    found, unreadable = [], []
    for path in folders:
        try:
            found.append(place_of(read_case(path, folder)))
        except Unreadable as error:
            unreadable.append(f"{path.relative_to(folder)}: {error}")
    console.print(table_of(found))
    console.print(f"{len(found)} cases read, {len(unreadable)} unreadable; no model was asked.", soft_wrap=True)
    for line in unreadable[:_SHOWN]:
        console.print(f"  {line}", markup=False, soft_wrap=True)
    return 0 if found else 2


def table_of(found: Sequence[Found]) -> Table:
    """Returns the table of A@1 and A@3 by category; `with a rule`: cases of causes for which there is a rule."""
    table = Table("category", "cases", "with a rule", "A@1", "A@3", "no signal")
    categories = Counter(one.case.category for one in found)
    for category in [*sorted(categories), ""]:
        chosen = [one for one in found if category in ("", one.case.category)]
        table.add_row(
            category or "all",
            str(len(chosen)),
            str(sum(one.case.cause.lower() in CAUSES for one in chosen)),
            _share(chosen, _FIRST),
            _share(chosen, _THIRD),
            str(sum(not one.signals for one in chosen)),
        )
    return table


def _share(found: Sequence[Found], most: int) -> str:
    right = sum(one.place is not None and one.place <= most for one in found)
    return f"{right / len(found):.2f} ({right})" if found else "-"
