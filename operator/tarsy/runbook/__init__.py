"""Fetches runbooks by URL: from listed hosts only, with their tokens, and never from inside the cluster.

Decision: whoever writes configuration of a namespace may name public hosts; only the administrator, by a flag of the
operator, opens what is not public. An address is checked where the connection to it is made, so it cannot change
between check and use.
"""
