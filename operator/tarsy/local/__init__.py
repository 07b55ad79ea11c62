"""Holds the former name of `tarsy.kubernetes_tools` for one release."""
