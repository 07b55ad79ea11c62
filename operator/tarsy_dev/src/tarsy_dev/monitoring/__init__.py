"""Runs a real Prometheus and real Alertmanagers on this machine, for `tarsy demo --scenario alertmanager` and tests."""
