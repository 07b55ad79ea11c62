"""Defines the errors of the local Kubernetes API; each message names what is missing and the remedy."""


class LocalKubernetesError(Exception):
    """Base of the errors of the local Kubernetes API."""


class BinariesNotFound(LocalKubernetesError):
    """kube-apiserver or etcd was not found."""


class AcquireError(LocalKubernetesError):
    """The binaries could not be fetched or built."""


class ChecksumMismatch(AcquireError):
    """A downloaded file does not match its published checksum; it was not used."""


class ServerStartError(LocalKubernetesError):
    """etcd or kube-apiserver ended, or was not ready in time; the message holds the end of its log."""
