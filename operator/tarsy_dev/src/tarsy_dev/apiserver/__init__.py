"""A real Kubernetes API on one machine: kube-apiserver and etcd found, fetched or built, and run as children.

Nothing is imported here: `python -m tarsy_dev.apiserver.acquire` has to work with the standard library alone,
before the project's dependencies are installed. Import `ApiServer` from `tarsy_dev.apiserver.server`.
"""
