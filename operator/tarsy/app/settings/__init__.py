"""Defines the settings of the long-running processes, in topics: the one place of each default, bound and description.

`topic` defines a topic and its flags, `work_topics` and `serving_topics` define the topics, `processes` the topics of
each process, `file` reads `kind: OperatorConfiguration`. Flags, environment variables, fields of the file and the page
reference/configuration.md are derived from the topics. The command line imports this package, so it imports no room
with heavy dependencies.
"""
