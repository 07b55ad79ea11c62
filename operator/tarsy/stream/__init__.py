"""Follow what happens, across processes: wake-ups over Postgres' NOTIFY and LISTEN.

A wake-up says that the record is worth a look and carries nothing else. It may be lost, so every reader also looks
after an interval; it may come twice, so looking is cheap and changes nothing.
"""
