"""Publishes the CAs that aggregated API servers trust, in a ConfigMap with a Role to read it.

As kube-apiserver publishes it at each start (kubernetes.io/docs/tasks/extend-kubernetes/configure-aggregation-layer).
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from embedded_kubeapi.auth.rbac import GROUP
from embedded_kubeapi.objects import Obj
from embedded_kubeapi.pki import FRONT_PROXY_USER, Pki

NAMESPACE, NAME = "kube-system", "extension-apiserver-authentication"


def front_proxy_objects(pki: Pki) -> Iterator[Obj]:
    """Returns the ConfigMap with the CAs of this start, and the Role to read it."""
    data = {
        "client-ca-file": pki.path("ca.crt").read_text(),
        "requestheader-client-ca-file": pki.path("front-proxy-ca.crt").read_text(),
        "requestheader-allowed-names": json.dumps([FRONT_PROXY_USER]),
        "requestheader-username-headers": json.dumps(["X-Remote-User"]),
        "requestheader-uid-headers": json.dumps(["X-Remote-Uid"]),
        "requestheader-group-headers": json.dumps(["X-Remote-Group"]),
        "requestheader-extra-headers-prefix": json.dumps(["X-Remote-Extra-"]),
    }
    yield {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME, "namespace": NAMESPACE}, "data": data}
    rule = {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": [NAME], "verbs": ["get", "list", "watch"]}
    yield {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Role",
        "metadata": {"name": f"{NAME}-reader", "namespace": NAMESPACE},
        "rules": [rule],
    }
