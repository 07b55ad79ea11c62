"""Maps kinds to the paths of their objects in the Kubernetes API.

Of the kinds that are not this project's, only those that something here asks for: discovery would cost a request.
"""

from tarsy.resources.meta import API_VERSION
from tarsy.resources.v1alpha1 import KINDS

_CORE = {
    "Namespace": ("v1", "namespaces", False),
    "Secret": ("v1", "secrets", True),
    "ConfigMap": ("v1", "configmaps", True),
    "ServiceAccount": ("v1", "serviceaccounts", True),
    "Pod": ("v1", "pods", True),
    "Event": ("v1", "events", True),
    "Deployment": ("apps/v1", "deployments", True),
    "ReplicaSet": ("apps/v1", "replicasets", True),
    "Job": ("batch/v1", "jobs", True),
    "NetworkPolicy": ("networking.k8s.io/v1", "networkpolicies", True),
    "Lease": ("coordination.k8s.io/v1", "leases", True),
    "CustomResourceDefinition": ("apiextensions.k8s.io/v1", "customresourcedefinitions", False),
    "SubjectAccessReview": ("authorization.k8s.io/v1", "subjectaccessreviews", False),
    "SelfSubjectAccessReview": ("authorization.k8s.io/v1", "selfsubjectaccessreviews", False),
    "TokenReview": ("authentication.k8s.io/v1", "tokenreviews", False),
    "SelfSubjectReview": ("authentication.k8s.io/v1", "selfsubjectreviews", False),
    "APIService": ("apiregistration.k8s.io/v1", "apiservices", False),
    "Service": ("v1", "services", True),
    "MutatingWebhookConfiguration": ("admissionregistration.k8s.io/v1", "mutatingwebhookconfigurations", False),
    "ValidatingAdmissionPolicy": ("admissionregistration.k8s.io/v1", "validatingadmissionpolicies", False),
    "ValidatingAdmissionPolicyBinding": (
        "admissionregistration.k8s.io/v1",
        "validatingadmissionpolicybindings",
        False,
    ),
    "ClusterRole": ("rbac.authorization.k8s.io/v1", "clusterroles", False),
    "ClusterRoleBinding": ("rbac.authorization.k8s.io/v1", "clusterrolebindings", False),
    "Role": ("rbac.authorization.k8s.io/v1", "roles", True),
    "RoleBinding": ("rbac.authorization.k8s.io/v1", "rolebindings", True),
}


def path(kind: str, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
    """Builds the URL path of a collection, of an object, or of a subresource.

    Args:
        kind: of the object.
        namespace: None for a cluster-scoped kind or all namespaces.
        name: None for the collection.
        subresource: such as `status`.
    """
    if kind in KINDS:
        version, plural, namespaced = API_VERSION, KINDS[kind].PLURAL, True
    else:
        version, plural, namespaced = _CORE[kind]
    parts = ["/api" if "/" not in version else "/apis", version]
    if namespaced and namespace is not None:
        parts += ["namespaces", namespace]
    parts.append(plural)
    parts += [part for part in (name, subresource) if part]
    return "/".join(parts)
