"""Structural schemas of custom resources: what a field may be, what it is when unset, and which rules hold.

`Schema` in `model` is what the rest uses. kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/
custom-resource-definitions describes the behaviour followed here.
"""
