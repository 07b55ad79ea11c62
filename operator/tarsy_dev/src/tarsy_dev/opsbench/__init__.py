"""Applies the rules to the cases of Cloud-OpsBench, a public data set that its user brings; nothing of it is shipped.

A case is a folder with `tool_cache.json`, the recorded answers of tools by `TOOL:{arguments}`, and `metadata.json`, the
truth. The rules see only the answers that a person gets of kubectl: `GetResources` (tables), `DescribeResource` and
`GetAppYAML`.
"""
