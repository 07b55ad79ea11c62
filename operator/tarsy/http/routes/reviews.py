"""Lists findings by the state of their reviews, returns the reviews of one, and accepts new reviews.

Decision: a verdict is a Review, created with the caller's own token, so that admission stamps the person. A request
about several investigations creates one for each, and tells which ones it did not.
"""

from typing import Final

from pydantic import Field

from tarsy.http.authentication.identity import Permission
from tarsy.http.errors import NotFound
from tarsy.http.failures import as_caller_said
from tarsy.http.models import PRODUCT_GROUP, Query
from tarsy.http.review_entry import review_manifest
from tarsy.http.route import CheckedRequest, Route
from tarsy.http.routes import paging
from tarsy.http.routes.investigations import RunUidQuery
from tarsy.http.routes.lookup import located
from tarsy.http.routes.parameters import Limit, Namespaces, Token
from tarsy.http.views.reviews import (
    ReviewItem,
    ReviewPage,
    ReviewResult,
    ReviewResults,
    ReviewsBody,
    ReviewView,
)
from tarsy.kube.client import ApiError
from tarsy.record.judging.review import ReviewState, why_unreviewable
from tarsy.resources.v1alpha1 import Investigation, Review
from tarsy.store.judging.reviews import Reviews

_LIST: Final = Permission("list", "reviews")
_STATE: Final = Field(default=ReviewState.NEEDS_REVIEW, description="State of the reviews.")


class NamespaceReviewsQuery(Query):
    """State and page."""

    state: ReviewState = _STATE
    limit: Limit = 50
    token: Token | None = Field(default=None, alias="continue")


class ReviewsQuery(NamespaceReviewsQuery):
    """Namespaces, state and page."""

    namespace: Namespaces = ()


async def list_reviews(ask: CheckedRequest) -> ReviewPage:
    """Returns a page of the queue of some namespaces."""
    query = ask.query(ReviewsQuery)
    uids = await ask.services.namespaces.uids(query.namespace)
    return await _page(ask, query, uids)


async def list_namespace_reviews(ask: CheckedRequest) -> ReviewPage:
    """Returns a page of the queue of the namespace in the path."""
    return await _page(ask, ask.query(NamespaceReviewsQuery), [ask.namespace_uid])


async def get_review(ask: CheckedRequest) -> ReviewView:
    """Returns what people said about the finding of an investigation."""
    run = await located(ask, ask.query(RunUidQuery).uid)
    reviews = Reviews(ask.services.pool)
    found = await reviews.reviewable(ask.namespace, ask.namespace_uid, ask.name, run)
    if found is None:
        raise NotFound(f"the record of investigation {ask.namespace}/{ask.name} has just been deleted")
    return ReviewView.of(ask.namespace, ask.name, found, await reviews.log(run))


async def create_reviews(ask: CheckedRequest) -> ReviewResults:
    """Creates a Review of the caller for each investigation of the body."""
    body, client = ask.body(ReviewsBody), ask.as_caller()
    results, reviews = [], Reviews(ask.services.pool)
    for name in dict.fromkeys(body.investigations):
        run = await reviews.reviewable(ask.namespace, ask.namespace_uid, name)
        if (why := why_unreviewable(run, f"Investigation {ask.namespace}/{name}")) is not None:
            results.append(ReviewResult(investigation=name, review=None, error=why[1]))
            continue
        found = await ask.services.kube.find(Investigation.KIND, ask.namespace, name)
        try:
            made = await client.create(review_manifest(ask.namespace, name, body, found))
        except ApiError as error:
            if error.transient:
                raise as_caller_said(error) from None
            results.append(ReviewResult(investigation=name, review=None, error=as_caller_said(error).message))
        else:
            results.append(ReviewResult(investigation=name, review=made["metadata"]["name"], error=None))
    return ReviewResults(items=tuple(results))


async def _page(ask: CheckedRequest, query: NamespaceReviewsQuery, uids: list[str] | None) -> ReviewPage:
    question = f"reviews/{query.state.value}/{uids}"
    after = None
    if query.token is not None:
        key, run = paging.decode_continue(question, query.token, 2)
        after = (paging.moment(key), paging.identity(run))
    found = await Reviews(ask.services.pool).queue(query.state, uids, query.limit + 1, after)
    shown, token = found[: query.limit], None
    if len(found) > query.limit:
        token = paging.encode_continue(question, (shown[-1].finished_at.isoformat(), str(shown[-1].id)))
    high = await ask.services.high_verdicts(
        [(one.chain_namespace, one.chain) for one in shown if one.confidence == "High"]
    )
    items = tuple(ReviewItem.of(one, high.get((one.chain_namespace, one.chain))) for one in shown)
    return ReviewPage(items=items, next=token)


ROUTES = (
    Route(
        method="GET",
        path="/reviews",
        operation="listReviews",
        summary="List finished investigations by the state of their reviews",
        handler=list_reviews,
        permission=_LIST,
        query=ReviewsQuery,
        response=ReviewPage,
        aggregated=True,
    ),
    Route(
        method="GET",
        path="/namespaces/{namespace}/reviews",
        operation="listNamespaceReviews",
        summary="List finished investigations of a namespace by the state of their reviews",
        handler=list_namespace_reviews,
        permission=_LIST,
        query=NamespaceReviewsQuery,
        response=ReviewPage,
        aggregated=True,
    ),
    Route(
        method="GET",
        path="/namespaces/{namespace}/investigations/{name}/review",
        operation="getReview",
        summary="Get the reviews of an investigation",
        handler=get_review,
        permission=Permission("get", "investigations", "review"),
        query=RunUidQuery,
        response=ReviewView,
        aggregated=True,
    ),
    Route(
        method="POST",
        path="/namespaces/{namespace}/reviews",
        operation="createReviews",
        summary="Claim, complete or reopen reviews, with the caller's own token",
        handler=create_reviews,
        permission=Permission("create", Review.PLURAL, group=PRODUCT_GROUP),
        body=ReviewsBody,
        response=ReviewResults,
    ),
)
