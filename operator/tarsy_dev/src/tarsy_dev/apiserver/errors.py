"""Defines the errors of the local Kubernetes API; each message names what is missing and the remedy."""


class LocalKubernetesError(Exception):
    """Base of everything that goes wrong with the Kubernetes API on one machine."""


class BinariesNotFound(LocalKubernetesError):
    """kube-apiserver or etcd is nowhere to be found."""


class AcquireError(LocalKubernetesError):
    """The binaries could not be fetched or built."""


class ChecksumMismatch(AcquireError):
    """A downloaded file is not what its publisher says it is; nothing of it was used."""


class ServerStartError(LocalKubernetesError):
    """etcd or kube-apiserver ended, or was not ready in time; the message holds the end of its log."""
