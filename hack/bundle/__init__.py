"""Makes the bundle for the Operator Lifecycle Manager (OLM) from manifests/: `python -m hack.bundle`.

Decision: everything is generated from what kustomize renders, so bundle and kustomizations cannot drift, and each
rendered object goes one of four ways: into the ClusterServiceVersion, as a manifest of the bundle, to what OLM makes by
itself (`hack.bundle.objects.OLM_MAKES`), or into a file that an administrator applies beside, because OLM cannot carry
it.

OLM creates the certificates of webhook and aggregated API and registers both, so the operator reads the certificate
from where OLM mounts it, and has no right to write the registrations.
"""
