"""Compares a real Kubernetes API with the embedded one by the same commands and calls (`make drift`).

`cases/` says what is asked, one file a subject, and `explained.yaml` which answers may differ and why. A difference
that nobody explained fails the report, and so does an explanation that explains nothing any more.

    cases      what is asked, read from the YAML
    session    asks one API, keeping what later questions need (names, tokens, revisions)
    normal     an answer as lines in which only what matters is left
    compare    two answers to one question, and what is said of the difference
    explained  the table of explanations, and the same as Markdown for the room's README
"""
