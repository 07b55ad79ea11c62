"""Runs the reconcilers: watch, cache, queue, relist, status writes, expiry."""
