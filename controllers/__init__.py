"""The controllers: events fill a cache and a queue, a reconcile is a function of spec, record and cache.

`watch` brings what happens in the cluster into the `cache` and puts keys into the `queue`, `relist` finds what it
missed; `alert`, `investigation`, `configuration` and `refusal` decide, one key at a time, level-triggered; `projection`
turns the record into status, `publisher` writes it; `active` runs them where the Lease is held.
"""
