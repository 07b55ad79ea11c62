"""Defines what readers get: lists, traces, queues, sums, and the history and health of objects."""
