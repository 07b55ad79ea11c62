"""Cases of the rules: by rule a fault, a healthy case, and one that looks alike but is another fault, or is over."""

from collections.abc import Mapping
from dataclasses import dataclass

from unit.evidence.objects import (
    Obj,
    ago,
    condition,
    container,
    ended,
    event,
    made,
    node,
    pod,
    service,
    status_of,
    template,
    unscheduled,
    waiting,
    workload,
)


@dataclass(frozen=True, slots=True)
class Case:
    """Objects of a cluster in three states; `likely`: the rule is not certain of the fault."""

    fault: tuple[Obj, ...]
    healthy: tuple[Obj, ...]
    alike: tuple[Obj, ...]
    likely: bool = False


PULL = "ErrImagePull"
IMAGE = 'Failed to pull image "registry.example/checkout:1.4": rpc error: code = NotFound desc = '
WELL = (pod(),)


def pulled(message: str) -> tuple[Obj, ...]:
    return (pod("checkout-1", waiting(PULL, message)),)


ABSENT = IMAGE + "registry.example/checkout:1.4: not found"
DENIED = IMAGE + "pull access denied, repository does not exist or may require authorization: authorization failed"
UNREACHABLE = IMAGE + "dial tcp: lookup registry.example on 10.96.0.10:53: no such host"
RATE = IMAGE + "429 Too Many Requests - toomanyrequests: You have reached your pull rate limit"

IMAGES: Mapping[str, Case] = {
    "image-not-found": Case(pulled(ABSENT), WELL, pulled(DENIED)),
    "image-pull-denied": Case(pulled(DENIED), WELL, pulled(ABSENT)),
    "image-registry-unreachable": Case(pulled(UNREACHABLE), WELL, pulled(RATE)),
    "image-rate-limited": Case(pulled(RATE), WELL, pulled(UNREACHABLE)),
    "image-name-invalid": Case(
        (
            pod(
                "checkout-1",
                waiting("InvalidImageName", 'Failed to apply default image tag "Checkout:1": invalid reference format'),
            ),
        ),
        WELL,
        pulled(ABSENT),
    ),
    "image-other-architecture": Case(
        (
            pod(
                "checkout-1",
                waiting(
                    "CrashLoopBackOff",
                    restartCount=3,
                    lastState=ended(255, "Error", message="exec /app: exec format error"),
                ),
            ),
        ),
        WELL,
        (
            pod(
                "checkout-1",
                waiting("CrashLoopBackOff", restartCount=3, lastState=ended(255, message="panic: bad format")),
            ),
        ),
    ),
}

CONFIG = "CreateContainerConfigError"
CRASH = "CrashLoopBackOff"
MOUNTS = template(container(envFrom=[{"configMapRef": {"name": "checkout-config"}}]))
CONFIG_MAP = made("ConfigMap", "checkout-config")
OPTIONAL = template(container(envFrom=[{"configMapRef": {"name": "checkout-config", "optional": True}}]))
NO_COMMAND = 'exec: "/bin/chekout": stat /bin/chekout: no such file or directory: unknown'
PROBED = template(container(readinessProbe={"httpGet": {"path": "/ready", "port": 8081}}))
PROBED_WELL = template(container(readinessProbe={"httpGet": {"path": "/ready", "port": "http"}}))
OOM = pod("checkout-1", waiting(CRASH, restartCount=4, lastState=ended(137, "OOMKilled")))
RECOVERED = pod(
    "checkout-1",
    status_of(
        ready=True,
        restartCount=4,
        lastState=ended(137, "OOMKilled", minutes=300),
        state={"running": {"startedAt": ago(hours=5)}},
    ),
    ready=True,
)
RESTARTED = pod("checkout-1", waiting(CRASH, restartCount=4, lastState=ended(143, minutes=3)))
STARTING = pod("checkout-1", status_of(state={"running": {"startedAt": ago(minutes=1)}}), ready=False)
READY = pod()


def unhealthy(about: Obj, probe: str) -> Obj:
    return event(about, "Unhealthy", f"{probe} probe failed: HTTP probe failed with statuscode: 503")


CONTAINERS: Mapping[str, Case] = {
    "container-config-missing": Case(
        (pod("checkout-1", waiting(CONFIG, 'configmap "checkout-config" not found')),),
        WELL,
        (pod("checkout-1", waiting(CONFIG, "container has runAsNonRoot and image will run as root")),),
    ),
    "configmap-absent": Case(
        (pod("checkout-1", ready=False, of=MOUNTS),),
        (pod("checkout-1", of=MOUNTS), CONFIG_MAP),
        (pod("checkout-1", ready=False, of=OPTIONAL),),
    ),
    "container-runs-as-root": Case(
        (pod("checkout-1", waiting(CONFIG, "container has runAsNonRoot and image will run as root")),),
        WELL,
        (pod("checkout-1", waiting(CONFIG, 'secret "checkout-key" not found')),),
    ),
    "container-command-not-found": Case(
        (pod("checkout-1", waiting(CRASH, restartCount=2, lastState=ended(128, "StartError", message=NO_COMMAND))),),
        WELL,
        (
            pod(
                "checkout-1",
                waiting(
                    CRASH, restartCount=2, lastState=ended(1, message="cannot open /etc/x: no such file or directory")
                ),
            ),
        ),
    ),
    "container-out-of-memory": Case((OOM,), WELL, (RECOVERED,)),
    "container-crash-loop": Case(
        (pod("checkout-1", waiting(CRASH, restartCount=4, lastState=ended(1))),), WELL, (OOM,), likely=True
    ),
    "init-container-fails": Case(
        (pod("checkout-1", init=[waiting(CRASH, name="migrate", restartCount=2, lastState=ended(3))]),),
        WELL,
        (pod("checkout-1", init=[status_of("migrate", state={"running": {"startedAt": ago(minutes=1)}})]),),
    ),
    "probe-liveness-fails": Case(
        (RESTARTED, unhealthy(RESTARTED, "Liveness")), WELL, (RESTARTED, unhealthy(RESTARTED, "Readiness")), likely=True
    ),
    "probe-readiness-fails": Case(
        (STARTING, unhealthy(STARTING, "Readiness")), WELL, (READY, unhealthy(READY, "Readiness")), likely=True
    ),
    "probe-startup-fails": Case(
        (STARTING, unhealthy(STARTING, "Startup")), WELL, (STARTING, unhealthy(STARTING, "Readiness")), likely=True
    ),
    "probe-port-unknown": Case(
        (pod("checkout-1", ready=False, of=PROBED),),
        (pod("checkout-1", of=PROBED),),
        (pod("checkout-1", ready=False, of=PROBED_WELL),),
        likely=True,
    ),
}


def refused(words: str) -> tuple[Obj, ...]:
    return (unscheduled(f"0/3 nodes are available: 3 {words}. preemption: 0/3 nodes are available."),)


def scheduling(words: str, alike: str) -> Case:
    over = (pod(), event(pod(), "FailedScheduling", f"0/3 nodes are available: 3 {words}.", minutes=40))
    return Case(refused(words), over, refused(alike))


TAINT = "node(s) had untolerated taint {dedicated: gpu}"
SELECTOR = "node(s) didn't match Pod's node affinity/selector"
SCHEDULING: Mapping[str, Case] = {
    "scheduling-resources": scheduling("Insufficient memory", TAINT),
    "scheduling-node-selector": scheduling(SELECTOR, "node(s) didn't match pod anti-affinity rules"),
    "scheduling-taint": scheduling(TAINT, SELECTOR),
    "scheduling-unschedulable-nodes": scheduling("node(s) were unschedulable", TAINT),
    "scheduling-pod-affinity": scheduling("node(s) didn't match pod anti-affinity rules", SELECTOR),
    "scheduling-topology-spread": scheduling("node(s) didn't match pod topology spread constraints", SELECTOR),
    "scheduling-host-port": scheduling("node(s) didn't have free ports for the requested pod ports", SELECTOR),
    "scheduling-volume-affinity": scheduling("node(s) had volume node affinity conflict", SELECTOR),
    "scheduling-unbound-claim": scheduling("pod has unbound immediate PersistentVolumeClaims", SELECTOR),
}

SHORT = workload("ReplicaSet", "checkout-5d", status={"replicas": 0})
FULL = workload("ReplicaSet", "checkout-5d")


def created(words: str, alike: str) -> Case:
    message = f'pods "checkout-5d-x" is forbidden: {words}'
    other = f'pods "checkout-5d-x" is forbidden: {alike}'
    failure = {"replicas": 0, "conditions": [condition("ReplicaFailure", "True", "FailedCreate", message)]}
    return Case(
        (workload("ReplicaSet", "checkout-5d", status=failure),),
        (FULL, event(FULL, "FailedCreate", message)),
        (SHORT, event(SHORT, "FailedCreate", other)),
    )


QUOTA = "exceeded quota: small, requested: limits.memory=2Gi, used: limits.memory=7Gi, limited: limits.memory=8Gi"
SECURITY = 'violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false'
ADMISSION: Mapping[str, Case] = {
    "quota-exceeded": created(QUOTA, SECURITY),
    "limit-range-refuses": created("maximum memory usage per Container is 1Gi, but limit is 2Gi", QUOTA),
    "pod-security-refuses": created(SECURITY, QUOTA),
    "webhook-refuses": created('admission webhook "policy.example" denied the request: no label', QUOTA),
    "webhook-unavailable": created(
        'failed calling webhook "policy.example": connection refused', 'admission webhook "policy.example" denied it'
    ),
    "service-account-missing": created(
        'error looking up service account shop/pay: serviceaccount "pay" not found', QUOTA
    ),
}

INVALID = 'Pod "checkout-5d-x" is invalid: spec.containers[0].image: Required value'
NO_RIGHT = 'User "system:serviceaccount:shop:checkout" cannot list resource "configmaps" in API group ""'
SHORTAGE = workload(
    "ReplicaSet",
    "checkout-5d",
    status={"replicas": 0, "conditions": [condition("ReplicaFailure", "True", "FailedCreate", INVALID)]},
)
LAST_WORDS = pod("checkout-1", waiting(CRASH, restartCount=3, lastState=ended(1, message="dial tcp: i/o timeout")))
ACCESS: Mapping[str, Case] = {
    "pods-not-created": Case(
        (SHORTAGE,), (FULL, event(FULL, "FailedCreate", INVALID)), created(QUOTA, QUOTA).fault, likely=True
    ),
    "rbac-denied": Case(
        (pod("checkout-1", waiting(CRASH, lastState=ended(1, message=f"configmaps is forbidden: {NO_RIGHT}"))),),
        WELL,
        (*created(QUOTA, QUOTA).fault, LAST_WORDS),
        likely=True,
    ),
}

CLAIM = {"storageClassName": "fast"}
PENDING = made("PersistentVolumeClaim", "data", spec=CLAIM, status={"phase": "Pending"})
BOUND = made("PersistentVolumeClaim", "data", spec={**CLAIM, "volumeName": "pv-1"}, status={"phase": "Bound"})
FAST = made("StorageClass", "fast", namespace="")
STUCK = pod("checkout-1", waiting("ContainerCreating"))
ATTACHED = 'Multi-Attach error for volume "pv-1": volume is already exclusively attached to one node'
SOURCE = 'MountVolume.SetUp failed for volume "config": configmap "checkout-config" not found'
TIMED_OUT = "Unable to attach or mount volumes: timed out waiting for the condition"
VOLUMES: Mapping[str, Case] = {
    "volume-source-missing": Case(
        (STUCK, event(STUCK, "FailedMount", SOURCE)),
        (READY, event(READY, "FailedMount", SOURCE)),
        (STUCK, event(STUCK, "FailedMount", TIMED_OUT)),
    ),
    "volume-multi-attach": Case(
        (STUCK, event(STUCK, "FailedAttachVolume", ATTACHED)), WELL, (STUCK, event(STUCK, "FailedMount", TIMED_OUT))
    ),
    "volume-not-mounted": Case(
        (STUCK, event(STUCK, "FailedMount", TIMED_OUT)), WELL, (STUCK, event(STUCK, "FailedMount", SOURCE)), likely=True
    ),
    "claim-class-missing": Case((PENDING,), (BOUND, FAST), (PENDING, FAST)),
    "claim-provisioning-fails": Case(
        (PENDING, FAST, event(PENDING, "ProvisioningFailed", "quota of the disk pool is used up")),
        (BOUND, FAST, event(BOUND, "ProvisioningFailed", "quota of the disk pool is used up")),
        (PENDING, FAST, event(PENDING, "WaitForFirstConsumer", "waiting for first consumer to be created")),
    ),
    "claim-lost": Case(
        (made("PersistentVolumeClaim", "data", spec={"volumeName": "pv-1"}, status={"phase": "Lost"}),),
        (BOUND,),
        (PENDING, FAST),
    ),
}

DEPLOYMENT, POD = workload(), pod()
ROUTE = {"rules": [{"http": {"paths": [{"backend": {"service": {"name": "checkout", "port": {"number": 80}}}}]}}]}
OTHER_PORT = {
    "rules": [{"http": {"paths": [{"backend": {"service": {"name": "checkout", "port": {"name": "http"}}}}]}}]
}
INGRESS = made("Ingress", "checkout", spec=ROUTE)
CLASSED = made("Ingress", "checkout", spec={**ROUTE, "ingressClassName": "nginx"})
DENY = made("NetworkPolicy", "deny", spec={"podSelector": {}, "policyTypes": ["Ingress"]})
ALLOW = made("NetworkPolicy", "allow", spec={"podSelector": {"matchLabels": {"app": "checkout"}}, "ingress": [{}]})
EGRESS = made("NetworkPolicy", "deny", spec={"podSelector": {}, "policyTypes": ["Egress"]})
EMPTY = workload(replicas=0)
STORE = workload("StatefulSet", "db", spec={"serviceName": "db"})


def route(kind: str, status: str) -> Obj:
    one = condition(kind, status, "BackendNotFound", 'service "checkout" not found')
    return made("HTTPRoute", "checkout", status={"parents": [{"conditions": [one]}]})


SERVICES: Mapping[str, Case] = {
    "service-selects-nothing": Case(
        (service(selector={"app": "checkout", "tier": "web"}), DEPLOYMENT, POD),
        (service(), DEPLOYMENT, POD),
        (service(), DEPLOYMENT),
    ),
    "service-scaled-to-zero": Case((service(), EMPTY), (service(), DEPLOYMENT, POD), (EMPTY,), likely=True),
    "service-no-ready-pod": Case(
        (service(), STARTING), (service(), POD), (service(publishNotReadyAddresses=True), STARTING), likely=True
    ),
    "service-target-port": Case(
        (service(port="web"), POD),
        (service(port="http"), POD),
        (service(port=9000), pod(of=template(container(ports=[])))),
    ),
    "ingress-backend-missing": Case(
        (INGRESS,), (INGRESS, service(), POD), (made("Ingress", "checkout", spec=OTHER_PORT), service(), POD)
    ),
    "ingress-class-missing": Case(
        (CLASSED, service(), POD),
        (CLASSED, service(), POD, made("IngressClass", "nginx", namespace="")),
        (INGRESS, service(), POD),
    ),
    "route-refused": Case((route("ResolvedRefs", "False"),), (route("Accepted", "True"),), (route("Other", "False"),)),
    "statefulset-service-missing": Case(
        (STORE, POD),
        (STORE, service("db", selector={"app": "checkout"}), POD),
        (workload("StatefulSet", "db"),),
        likely=True,
    ),
    "network-policy-isolates": Case(
        (DENY, service(), POD), (DENY, ALLOW, service(), POD), (EGRESS, service(), POD), likely=True
    ),
}

DISK = condition("DiskPressure", "True", "KubeletHasDiskPressure", "kubelet has disk pressure")
EVICTED = pod(
    "checkout-0",
    ready=False,
    status={"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: ephemeral-storage."},
)
CORDONED = node("node-1", unschedulable=True)
NODES: Mapping[str, Case] = {
    "node-not-ready": Case(
        (node("node-1", condition("Ready", "Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.")),),
        (node(),),
        (node("node-1", DISK),),
    ),
    "node-pressure": Case((node("node-1", DISK),), (node(),), (node("node-1", condition("DiskPressure", "False")),)),
    "pod-evicted": Case((EVICTED, node("node-1", DISK)), (POD, node()), (EVICTED, node())),
    "node-cordoned": Case((CORDONED, unscheduled("")), (CORDONED,), (node(), unscheduled("")), likely=True),
}

STALLED = condition(
    "Progressing", "False", "ProgressDeadlineExceeded", 'ReplicaSet "checkout-5d" has timed out progressing.'
)
MOVING = condition("Progressing", "True", "ReplicaSetUpdated", 'ReplicaSet "checkout-5d" is progressing.')


def scaler(*conditions: Obj) -> Obj:
    spec = {"scaleTargetRef": {"kind": "Deployment", "name": "checkout"}, "maxReplicas": 4}
    return made("HorizontalPodAutoscaler", "checkout", spec=spec, status={"conditions": list(conditions)})


def budget(allowed: int) -> Obj:
    spec = {"selector": {"matchLabels": {"app": "checkout"}}}
    return made("PodDisruptionBudget", "checkout", spec=spec, status={"disruptionsAllowed": allowed})


NO_METRICS = condition("ScalingActive", "False", "FailedGetResourceMetric", "unable to get metrics for resource cpu")
OFF = condition("ScalingActive", "False", "ScalingDisabled", "scaling is disabled since the replica count is zero")
AT_MOST = condition("ScalingLimited", "True", "TooManyReplicas", "the desired replica count is more than the maximum")
AT_LEAST = condition("ScalingLimited", "True", "TooFewReplicas", "the desired replica count is less than the minimum")
ROLLOUTS: Mapping[str, Case] = {
    "rollout-stuck": Case(
        (workload(status={"conditions": [STALLED]}),),
        (workload(),),
        (workload(status={"conditions": [MOVING]}),),
        likely=True,
    ),
    "rollout-paused": Case(
        (workload(spec={"paused": True}, status={"updatedReplicas": 0}),),
        (workload(),),
        (workload(spec={"paused": True}),),
        likely=True,
    ),
    "autoscaler-metrics-missing": Case(
        (scaler(NO_METRICS), DEPLOYMENT), (scaler(), DEPLOYMENT), (scaler(OFF), DEPLOYMENT)
    ),
    "autoscaler-target-missing": Case(
        (scaler(),),
        (scaler(), DEPLOYMENT),
        (made("HorizontalPodAutoscaler", "x", spec={"scaleTargetRef": {"kind": "Rollout", "name": "x"}}),),
    ),
    "autoscaler-at-maximum": Case(
        (scaler(AT_MOST), DEPLOYMENT), (scaler(), DEPLOYMENT), (scaler(AT_LEAST), DEPLOYMENT), likely=True
    ),
    "disruption-budget-blocks": Case(
        (budget(0), POD, CORDONED), (budget(1), POD, node()), (budget(0), POD, node()), likely=True
    ),
}

FAILED = condition("Failed", "True", "BackoffLimitExceeded", "Job has reached the specified backoff limit")
DONE = condition("Complete", "True")
CRON = made("CronJob", "backup", spec={"schedule": "0 * * * *"})


def job(name: str, one: Obj, *, hours: float = 2, owner: Obj | None = None) -> Obj:
    status = {"conditions": [one], "succeeded": 1}
    return made("Job", name, owner=owner, status=status, metadata={"creationTimestamp": ago(hours=hours)})


def certificate(*conditions: Obj, ends: str) -> Obj:
    return made("Certificate", "shop-tls", status={"conditions": list(conditions), "notAfter": ends})


def application(phase: str) -> Obj:
    return made(
        "Application",
        "shop",
        status={"operationState": {"phase": phase, "message": "one or more objects failed to apply"}},
    )


def dns(ready: int, replicas: int = 2) -> Obj:
    return made(
        "Deployment", "coredns", namespace="kube-system", spec={"replicas": replicas}, status={"readyReplicas": ready}
    )


LATER = "2027-01-01T00:00:00Z"
MISSED = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
PLATFORM: Mapping[str, Case] = {
    "job-failed": Case(
        (job("backup-1", FAILED),),
        (job("backup-1", DONE),),
        (CRON, job("backup-1", FAILED, owner=CRON), job("backup-2", DONE, hours=1, owner=CRON)),
    ),
    "cronjob-does-not-run": Case(
        (CRON, event(CRON, "TooManyMissedTimes", MISSED)),
        (CRON,),
        (CRON, event(CRON, "TooManyMissedTimes", MISSED, minutes=90)),
    ),
    "certificate-not-ready": Case(
        (certificate(condition("Ready", "False", "Failed", "the ACME order failed"), ends=LATER),),
        (certificate(condition("Ready", "True"), ends=LATER),),
        (certificate(condition("Issuing", "False"), ends=LATER),),
    ),
    "gitops-sync-fails": Case((application("Failed"),), (application("Succeeded"),), (application("Running"),)),
    "dns-not-ready": Case((dns(0),), (dns(2),), (dns(1),)),
}

CASES: Mapping[str, Case] = {
    **IMAGES, **CONTAINERS, **SCHEDULING, **ADMISSION, **ACCESS, **VOLUMES, **SERVICES, **NODES, **ROLLOUTS, **PLATFORM,
}  # fmt: skip
