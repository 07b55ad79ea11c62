"""Makes the Helm charts from manifests/: `python -m hack.chart [--out FOLDER] [--image REGISTRY/NAME]`.

Decision: the templates are generated from what kustomize renders, so chart and kustomizations cannot drift. A chart
offers choices (`Choice`): each is a condition on the values, and what kustomize renders for it. An object that all of
them share is written once; where they differ, each form is written under its condition. Beside that a template differs
from the object by the namespaces, the image, and the few fields of pods that clusters need to set.

Two charts, because Helm must know the kinds of all objects before it creates the first: `tarsy` defines the kinds, and
`tarsy-library` has objects of them.
"""
