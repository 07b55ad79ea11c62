"""Computes evidence from Kubernetes objects before a model is asked: topology, changes, signals of known faults.

Everything here is a pure function of a `Snapshot`: it reads no API, calls no model and takes the time from the
snapshot. Who read the objects, and with which rights, is the business of the caller.
"""
