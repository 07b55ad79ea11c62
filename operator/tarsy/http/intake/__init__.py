"""Alerts come in: Alertmanager's notifications, JSON of any form, and text.

`bodies` reads what was sent, `routing` finds the AlertRoute that takes it, `senders` knows who sent it, `alerts` makes
the Alert, and `taking` is the way of one notification through all of them; `application` serves it. What is decided is
in Postgres (`tarsy.store.intake`).
"""
