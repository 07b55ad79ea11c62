"""Runs investigations in one process, without Postgres and without a Kubernetes API, for evals."""
