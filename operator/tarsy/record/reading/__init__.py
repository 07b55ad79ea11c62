"""Defines the data for readers: lists, traces, queues, sums, and the history and health of objects."""
