"""Lists the built-in kinds that are served, with their names as in `kubectl api-resources`."""

from __future__ import annotations

from collections.abc import Iterator

from embedded_kubeapi.builtin.columns import COLUMNS
from embedded_kubeapi.builtin.events import EVENTS_V1, selectable
from embedded_kubeapi.resource import ALL_VERBS, Resource
from embedded_kubeapi.schema.builtin import BuiltinSchema
from embedded_kubeapi.schema.models import model_of

# group/version: then plural, Kind, short names, categories, subresources; a * before a plural says cluster-wide.
_KINDS = """
v1
  bindings Binding - - - create
  configmaps ConfigMap cm
  endpoints Endpoints ep
  events Event ev
  limitranges LimitRange limits
  *namespaces Namespace ns - status,finalize
  *nodes Node no - status
  persistentvolumeclaims PersistentVolumeClaim pvc - status
  *persistentvolumes PersistentVolume pv - status
  pods Pod po all status,log,eviction,binding,ephemeralcontainers
  podtemplates PodTemplate
  replicationcontrollers ReplicationController rc all status,scale
  resourcequotas ResourceQuota quota - status
  secrets Secret
  serviceaccounts ServiceAccount sa - token
  services Service svc all status
apps/v1
  controllerrevisions ControllerRevision
  daemonsets DaemonSet ds all status
  deployments Deployment deploy all status,scale
  replicasets ReplicaSet rs all status,scale
  statefulsets StatefulSet sts all status,scale
batch/v1
  cronjobs CronJob cj all status
  jobs Job - all status
autoscaling/v2
  horizontalpodautoscalers HorizontalPodAutoscaler hpa all status
autoscaling/v1
  horizontalpodautoscalers HorizontalPodAutoscaler hpa all status
policy/v1
  poddisruptionbudgets PodDisruptionBudget pdb - status
networking.k8s.io/v1
  *ingressclasses IngressClass
  ingresses Ingress ing - status
  networkpolicies NetworkPolicy netpol
discovery.k8s.io/v1
  endpointslices EndpointSlice
coordination.k8s.io/v1
  leases Lease
events.k8s.io/v1
  events Event ev
storage.k8s.io/v1
  *storageclasses StorageClass sc
scheduling.k8s.io/v1
  *priorityclasses PriorityClass pc
rbac.authorization.k8s.io/v1
  *clusterrolebindings ClusterRoleBinding
  *clusterroles ClusterRole
  rolebindings RoleBinding
  roles Role
apiextensions.k8s.io/v1
  *customresourcedefinitions CustomResourceDefinition crd,crds api-extensions status
apiregistration.k8s.io/v1
  *apiservices APIService - api-extensions status
admissionregistration.k8s.io/v1
  *mutatingwebhookconfigurations MutatingWebhookConfiguration - api-extensions
  *validatingwebhookconfigurations ValidatingWebhookConfiguration - api-extensions
  *validatingadmissionpolicies ValidatingAdmissionPolicy - api-extensions status
  *validatingadmissionpolicybindings ValidatingAdmissionPolicyBinding - api-extensions
certificates.k8s.io/v1
  *certificatesigningrequests CertificateSigningRequest csr - status,approval
authentication.k8s.io/v1
  *selfsubjectreviews SelfSubjectReview - - - create
  *tokenreviews TokenReview - - - create
authorization.k8s.io/v1
  localsubjectaccessreviews LocalSubjectAccessReview - - - create
  *selfsubjectaccessreviews SelfSubjectAccessReview - - - create
  *selfsubjectrulesreviews SelfSubjectRulesReview - - - create
  *subjectaccessreviews SubjectAccessReview - - - create
"""
_SELECTABLE: dict[str, tuple[str, ...]] = {
    "pods": ("spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "status.phase",
             "status.podIP", "status.nominatedNodeName", "spec.hostNetwork"),
    "events": ("involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
               "involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath", "reason",
               "reportingComponent", "source", "type"),
    "secrets": ("type",), "namespaces": ("status.phase",), "nodes": ("spec.unschedulable",),
    "jobs": ("status.successful",), "replicasets": ("status.replicas",), "services": ("spec.clusterIP", "spec.type"),
    "certificatesigningrequests": ("spec.signerName",),
}  # fmt: skip
_WITHOUT_GENERATION = frozenset(("namespaces", "nodes", "services", "persistentvolumes", "persistentvolumeclaims",
                                 "resourcequotas", "certificatesigningrequests", "apiservices"))  # fmt: skip
_WITH_GENERATION = frozenset(("networkpolicies", "ingresses", "validatingadmissionpolicies", "controllerrevisions",
                              "mutatingwebhookconfigurations", "validatingwebhookconfigurations",
                              "validatingadmissionpolicybindings", "ingressclasses", "priorityclasses"))  # fmt: skip
_EVENTS_GROUP = "events.k8s.io"


def builtin_resources() -> Iterator[Resource]:
    """Returns all built-in kinds."""
    group = version = ""
    for line in _KINDS.strip().splitlines():
        if not line.startswith(" "):
            group, _, version = line.rpartition("/")
            continue
        plural, kind, *rest = line.split()
        short, categories, subresources, verbs = ([] if part == "-" else part.split(",") for part in _four(rest))
        name = plural.removeprefix("*")
        yield Resource(
            group=group,
            version=version,
            plural=name,
            kind=kind,
            namespaced=name == plural,
            singular=kind.lower(),
            list_kind=kind + "List",
            short_names=tuple(short),
            categories=tuple(categories),
            subresources=frozenset(subresources),
            verbs=tuple(verbs) or ALL_VERBS,
            columns=COLUMNS.get(name, ()),
            schema=BuiltinSchema(found) if (found := model_of(group, version, kind)) else None,
            selectable=_selectable(group, name),
            stored=not verbs,
            conversion=EVENTS_V1 if group == _EVENTS_GROUP else None,
            generations=name in _WITH_GENERATION or ("status" in subresources and name not in _WITHOUT_GENERATION),
        )


def _selectable(group: str, plural: str) -> tuple[str, ...]:
    fields = _SELECTABLE.get(plural, ())
    return selectable(fields) if group == _EVENTS_GROUP else fields


def _four(parts: list[str]) -> list[str]:
    return [*parts, *["-"] * (4 - len(parts))]
