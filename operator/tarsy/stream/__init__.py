"""Notifies other processes of changes by wake-ups over NOTIFY and LISTEN of Postgres.

A wake-up only makes a reader query the record. It may be lost, so every reader also polls; it may come twice, so the
query is cheap and changes nothing.
"""
