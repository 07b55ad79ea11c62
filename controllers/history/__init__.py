"""Records changes in the namespaces that have a history.

`recorder` starts and stops it, `kind_watch` lists and watches one kind in one namespace, `buffer` holds changes until
they are recorded, `observations` turns them into what is written. What a change is, `tarsy.evidence.history` decides.
"""
