"""Keeps the former name of `tarsy.kubernetes_tools` for one release: manifests of the last one start it by this
name."""
