"""Measures investigations: cassettes of recorded tool calls, answers out of them, comparison of runs, statistics.

Nothing here asks a model, opens a connection or knows the Kubernetes API: everything is a function of recorded data.
"""
