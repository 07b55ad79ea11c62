"""Looks up list prices of well-known models, for providers that set no rates.

Decision: only an exact name, dated or `-latest` or not, at the maker's own address has rates here. Whoever stands
behind another address sets prices of their own, and a guess by a name's beginning would price tomorrow's model as
today's: unknown stays unknown. The plan carries the table's date, so a record says which prices its cost rests on.
List prices for standard processing. Writing to a cache costs a multiple of input (`tarsy.engine.limits.budget.cost`).
"""

import re
from typing import Final

from tarsy.plan.model import LongRates, PlannedRates
from tarsy.plan.provider_types import provider_type

AS_OF: Final = "2026-11-04"
SOURCE: Final = "the makers' price lists as collected by genai-prices 0.2.3 (MIT)"

_DATED = re.compile(r"-(\d{8}|\d{4}-\d{2}-\d{2}|latest)$")


def bundled(kind: str, model: str, base_url: str | None) -> PlannedRates | None:
    """Returns the list price of a model; None where it is not known.

    Args:
        kind: `spec.type`.
        model: `spec.model`.
        base_url: `spec.baseURL`; prices at another address than the maker's are not known.
    """
    if base_url is not None:
        return None
    match provider_type(kind).list_prices.get(_DATED.sub("", model)):
        case (read, cached, written):
            return PlannedRates(input=read, cached=cached, output=written, as_of=AS_OF)
        case (read, cached, written, above, *more):
            long = LongRates(above=above, input=more[0], cached=more[1], output=more[2])
            return PlannedRates(input=read, cached=cached, output=written, long=long, as_of=AS_OF)
        case _:
            return None
