"""Implements the structural schemas of custom resources: types, defaults and validation rules.

`Schema` in `model` is what the rest uses. kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/
custom-resource-definitions describes the behaviour followed here.
"""
