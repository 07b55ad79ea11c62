"""Makes Reviews for the route and for the plugin alike, and a case of an EvalSuite from a reviewed investigation."""

from collections.abc import Mapping
from typing import Any

from tarsy.http.views.reviews import ReviewsBody, ReviewView
from tarsy.resources.meta import API_VERSION

_GENERATED = 40
_CASE_NAME = 63


def review_manifest(
    namespace: str, investigation: str, body: ReviewsBody, found: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Returns the Review that says what a person says about an investigation.

    Args:
        namespace: of both.
        investigation: its name.
        body: what the person says.
        found: the Investigation, which owns the Review; None: it was deleted, and only its record is left.
    """
    meta: dict[str, Any] = {"namespace": namespace, "generateName": f"{investigation[:_GENERATED].rstrip('-.')}-"}
    ref = {"name": investigation}
    if found is not None:
        uid = found["metadata"]["uid"]
        ref["uid"] = uid
        owner = {"apiVersion": API_VERSION, "kind": "Investigation", "name": investigation, "uid": uid}
        meta["ownerReferences"] = [owner]
    return {
        "apiVersion": API_VERSION,
        "kind": "Review",
        "metadata": meta,
        "spec": {"investigationRef": ref, **body.spec()},
    }


def case_of_review(review: ReviewView) -> dict[str, Any] | None:
    """Returns a case of an EvalSuite that expects the root cause of a review; None: no counted verdict names one.

    Args:
        review: what people said.
    """
    cause = review.root_cause
    if cause is None:
        return None
    name = review.name.replace(".", "-")[:_CASE_NAME].strip("-")
    return {
        "name": name,
        "source": {"investigationRef": {"name": review.name, "uid": str(review.uid)}},
        "expect": {"verdict": "Cause", "rootCause": {"entities": [f"{cause.kind}/{cause.name}"]}},
    }
