"""Runs a real Kubernetes API on one machine: finds, downloads or builds kube-apiserver and etcd.

Nothing is imported here: `python -m tarsy_dev.apiserver.acquire` has to work with the standard library alone,
before the project's dependencies are installed. Import `ApiServer` from `tarsy_dev.apiserver.server`.
"""
