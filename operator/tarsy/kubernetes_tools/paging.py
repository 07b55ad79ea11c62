"""Reads long lists page by page, and reports what was left out."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tarsy.kubernetes_tools.cluster import ClusterReader

PAGE = 200
MOST_PAGES = 5


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a list. `rest` is the token of what follows, `left` how many objects that are, as far as known."""

    items: list[dict[str, Any]]
    rest: str | None = None
    left: int | None = None

    def left_out(self, remedy: str) -> str:
        """Returns a line about what is missing, beginning with a line break; an empty text if nothing is."""
        if self.rest is None:
            return ""
        more = f"{self.left} more" if self.left is not None else "more"
        return f"\n[the first {len(self.items)} objects; there are {more}: {remedy}]"


async def read_page(
    cluster: ClusterReader, path: str, parameters: Mapping[str, str | None], *, doing: str, size: int = PAGE
) -> Page:
    """Returns one page of a list.

    Args:
        cluster: the API.
        path: of the list.
        parameters: query parameters; those that are None are not sent.
        doing: the request as "verb resource where", for errors.
        size: maximum objects.

    Raises:
        ClusterError: the API refused, or was not reached.
    """
    answer = await cluster.get(path, {**parameters, "limit": str(size)}, doing=doing)
    meta = answer.get("metadata") or {}
    left = meta.get("remainingItemCount")
    return Page(list(answer.get("items") or ()), meta.get("continue") or None, left if isinstance(left, int) else None)


async def read_list(cluster: ClusterReader, path: str, parameters: Mapping[str, str | None], *, doing: str) -> Page:
    """Returns a list of at most PAGE * MOST_PAGES objects; arguments and errors are those of `read_page`."""
    page = await read_page(cluster, path, parameters, doing=doing)
    items = page.items
    for _ in range(MOST_PAGES - 1):
        if page.rest is None:
            break
        page = await read_page(cluster, path, {**parameters, "continue": page.rest}, doing=doing)
        items += page.items
    return Page(items, page.rest, page.left)
