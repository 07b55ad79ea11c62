"""Defines rules about volumes and claims."""

import re
from collections.abc import Iterator

from tarsy.evidence.fields import string
from tarsy.evidence.rules.facts import Facts
from tarsy.evidence.rules.signal import Certainty, Signal, rule
from tarsy.evidence.snapshot import ObjectKey

_SOURCE_MISSING = re.compile(
    r'(?:configmap|secret) "?[^"\s]+"? not found|references non-existent (?:config|secret) key', re.I
)
_MULTI_ATTACH = re.compile(r"Multi-Attach error", re.IGNORECASE)
_MOUNT = ("FailedMount", "FailedAttachVolume", "FailedMapVolume")


@rule("volume-source-missing", "A ConfigMap or Secret that a pod mounts does not exist")
def source_missing(facts: Facts) -> Iterator[Signal]:
    """Finds pods that wait for a ConfigMap or Secret that they mount."""
    for key, _ in facts.unready_pods:
        if message := facts.message(key, _SOURCE_MISSING, *_MOUNT):
            yield Signal((key,), f"A volume of {key} cannot be mounted: its source does not exist.", message)


@rule("volume-multi-attach", "A volume is still attached to another node")
def multi_attach(facts: Facts) -> Iterator[Signal]:
    """Finds pods whose volume is attached to another node."""
    for key, _ in facts.unready_pods:
        if message := facts.message(key, _MULTI_ATTACH, *_MOUNT):
            yield Signal((key,), f"A volume of {key} is still attached to another node.", message)


@rule("volume-not-mounted", "A volume cannot be attached or mounted")
def not_mounted(facts: Facts) -> Iterator[Signal]:
    """Finds pods with a volume that fails to mount for another reason."""
    for key, _ in facts.unready_pods:
        messages = list(facts.messages(key, *_MOUNT))
        if messages and not any(_SOURCE_MISSING.search(one) or _MULTI_ATTACH.search(one) for one in messages):
            yield Signal((key,), f"A volume of {key} cannot be mounted.", messages[0], Certainty.LIKELY)


@rule("claim-class-missing", "A PersistentVolumeClaim names a StorageClass that does not exist")
def class_missing(facts: Facts) -> Iterator[Signal]:
    """Finds pending claims whose StorageClass does not exist."""
    for key, claim in facts.snapshot.items("PersistentVolumeClaim"):
        name = string(claim, "spec", "storageClassName")
        if string(claim, "status", "phase") != "Pending" or not name or string(claim, "spec", "volumeName"):
            continue
        target = ObjectKey("StorageClass", "", name)
        if facts.snapshot.complete("StorageClass", "") and not facts.snapshot.at(target):
            text = f"{key} names {target}, which does not exist."
            yield Signal((key, target), text, f"storageClassName: {name}")


@rule("claim-provisioning-fails", "The provisioner of a PersistentVolumeClaim reports an error")
def provisioning_fails(facts: Facts) -> Iterator[Signal]:
    """Finds pending claims whose provisioner reports an error."""
    for key, claim in facts.snapshot.items("PersistentVolumeClaim"):
        if string(claim, "status", "phase") == "Pending":
            for message in facts.messages(key, "ProvisioningFailed"):
                yield Signal((key,), f"The volume of {key} is not provisioned.", message)
                break


@rule("claim-lost", "The volume of a bound PersistentVolumeClaim is gone")
def lost(facts: Facts) -> Iterator[Signal]:
    """Finds claims whose volume is gone."""
    for key, claim in facts.snapshot.items("PersistentVolumeClaim"):
        if string(claim, "status", "phase") == "Lost":
            yield Signal((key,), f"{key} has lost its volume {string(claim, 'spec', 'volumeName')}.", "phase: Lost")


RULES = (source_missing, multi_attach, not_mounted, class_missing, provisioning_fails, lost)
