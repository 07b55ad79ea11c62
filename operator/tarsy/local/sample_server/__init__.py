"""Former name of `tarsy.kubernetes_tools`, kept for one release: manifests of the last one start it by this name."""
