"""Defines the errors of expressions, at compile time and at evaluation."""


class CelSyntaxError(ValueError):
    """The expression cannot be compiled."""


class CelError(Exception):
    """The expression has no value for this input, such as a missing key or a division by zero."""


class CelCostError(Exception):
    """The expression costs too much; no operator of the language absorbs this, as `||` absorbs a `CelError`."""
