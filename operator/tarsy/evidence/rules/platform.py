"""Defines rules about services of the platform: certificates, GitOps, DNS."""

from collections.abc import Iterator

from tarsy.evidence.fields import integer, mapping, moment, one_line, string
from tarsy.evidence.rules.facts import Facts
from tarsy.evidence.rules.signal import Signal, rule
from tarsy.evidence.snapshot import ObjectKey
from tarsy.evidence.workloads import condition


@rule("certificate-not-ready", "A Certificate of cert-manager is not issued or not renewed")
def certificate(facts: Facts) -> Iterator[Signal]:
    """Finds Certificates that are not ready, or whose time is over."""
    for key, found in facts.snapshot.items("Certificate"):
        one, ends = condition(found, "Ready"), moment(found, "status", "notAfter")
        if ends is not None and ends <= facts.snapshot.read_at:
            yield Signal((key,), f"{key} has expired.", f"notAfter: {string(found, 'status', 'notAfter')}")
        elif one.get("status") == "False":
            message = one_line(string(one, "message"), f"reason: {string(one, 'reason')}")
            yield Signal((key,), f"{key} is not ready.", message)


@rule("gitops-sync-fails", "Argo CD or Flux cannot apply the configuration")
def sync_fails(facts: Facts) -> Iterator[Signal]:
    """Finds Applications, Kustomizations and HelmReleases that are not applied."""
    for key, application in facts.snapshot.items("Application"):
        state = mapping(application, "status", "operationState")
        if string(state, "phase") in ("Failed", "Error"):
            message = one_line(string(state, "message"), f"phase: {string(state, 'phase')}")
            yield Signal((key,), f"{key} cannot be synchronized.", message)
    for kind in ("Kustomization", "HelmRelease"):
        for key, found in facts.snapshot.items(kind):
            one = condition(found, "Ready")
            if one.get("status") == "False":
                message = one_line(string(one, "message"), f"reason: {string(one, 'reason')}")
                yield Signal((key,), f"{key} is not applied.", message)


@rule("dns-not-ready", "The DNS of the cluster has no ready pod")
def dns(facts: Facts) -> Iterator[Signal]:
    """Finds a cluster DNS without a ready pod."""
    for name in ("coredns", "kube-dns"):
        deployment = facts.snapshot.get("Deployment", "kube-system", name)
        if deployment is None:
            continue
        wanted, ready = integer(deployment, "spec", "replicas"), integer(deployment, "status", "readyReplicas") or 0
        if wanted != 0 and not ready:
            key = ObjectKey("Deployment", "kube-system", name)
            yield Signal((key,), "The DNS of the cluster has no ready pod.", f"replicas: {wanted}")


RULES = (certificate, sync_fails, dns)
