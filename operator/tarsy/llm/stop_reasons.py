"""Decides which models accept stop sequences.

A model that refuses them answers 400, so they are sent only where that is known not to happen. OpenAI's and xAI's
reasoning models refuse them. A model that thinks may write such a text while it thinks, and would be cut there.
"""

import re

from tarsy.plan.model import ProviderPlan
from tarsy.plan.provider_types import provider_type

_REFUSE = re.compile(r"(?:^|[/.:])(?:o\d|gpt-[5-9]|grok|codex)")


def stops(provider: ProviderPlan) -> bool:
    """Whether the provider's model accepts stop sequences."""
    if not provider_type(provider.type).stop_sequences:
        return False
    return provider.thinking is None and not _REFUSE.search(provider.model.lower())
