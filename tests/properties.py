"""Says how many examples a property tries that needs more than the usual number."""

from hypothesis import settings

_ALL = settings.get_profile("default").max_examples


def examples(number: int) -> settings:
    """Returns the settings of a property with so many examples; `--quick` tries the share that it tries of others."""
    return settings(max_examples=max(1, number * settings().max_examples // _ALL))
