"""Receives alerts: notifications of Alertmanager, JSON of any form, and text.

Read `taking` first: it processes one notification. `senders` authenticates its sender, `bodies` parses it, `routing`
finds the matching AlertRoute, `alerts` builds the Alert, `application` serves the paths. Decisions are made in Postgres
(`tarsy.store.intake`).
"""
