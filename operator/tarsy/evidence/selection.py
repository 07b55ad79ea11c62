"""Finds the pods that label selectors select, within a limit of comparisons.

Selectors times pods grows with the square of a namespace, and whoever writes objects chooses both. So pods are indexed
by label, the answer for a selector is kept, and all selectors together make at most `MOST_COMPARED` comparisons. What
is beyond is not answered: then `cut` is true, relations are missing, and no rule may conclude that nothing is selected.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from tarsy.evidence.fields import Object, labels
from tarsy.evidence.snapshot import Gap, ObjectKey, Snapshot, selects
from tarsy.evidence.workloads import template_labels, template_of

MOST_COMPARED = 400_000
"""Maximum comparisons of a selector with the labels of a pod: a second or two."""

_SELECTED = ("Pod", "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet")


class Selection:
    """The pods of a snapshot, and the workloads by the labels of their pods.

    Args:
        snapshot: the objects.
        most: maximum comparisons.

    Attributes:
        cut: whether a selector was not answered.
    """

    def __init__(self, snapshot: Snapshot, most: int = MOST_COMPARED) -> None:
        self.cut = False
        self._left = self._most = most
        self._labels: dict[str, dict[ObjectKey, Mapping[str, str]]] = defaultdict(dict)
        self._having: dict[tuple[str, str, str], list[ObjectKey]] = defaultdict(list)
        self._known: dict[tuple[str, str], Sequence[ObjectKey]] = {}
        for kind in _SELECTED:
            for key, obj in snapshot.items(kind):
                found = template_labels(template_of(key, obj) or {})
                self._labels[key.namespace][key] = found
                for name, text in found.items():
                    self._having[key.namespace, name, text].append(key)

    def chosen(self, selector: Object, namespace: str) -> Sequence[ObjectKey]:
        """Returns the pods of a namespace that a selector selects, and the workloads whose pods it would select.

        Args:
            selector: `matchLabels` and `matchExpressions`; an empty one selects all.
            namespace: of the pods.
        """
        place = namespace, repr(selector)
        if place in self._known:
            found = self._known[place]
            self._left -= len(found)  # the caller looks at each
        else:
            every = self._labels.get(namespace, {})
            having = [self._having.get((namespace, *pair), []) for pair in labels(selector, "matchLabels").items()]
            among = min(having, key=len, default=list(every))
            self._left -= len(among)
            if self._left >= 0:
                self._known[place] = [key for key in among if selects(selector, every[key])]
            found = self._known.get(place, ())
        if self._left < 0:
            self.cut = True
            return ()
        return found

    @property
    def gaps(self) -> Sequence[Gap]:
        """Returns the parts that are missing because of the limit."""
        reason = f"only the first {self._most:,} pods that selectors may select were compared"
        return [Gap("selected pods", "", reason)] if self.cut else []
