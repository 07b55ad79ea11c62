"""Cleans and validates objects by one structural schema with its compiled rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from embedded_kubeapi.errors import FieldError
from embedded_kubeapi.objects import Obj
from embedded_kubeapi.schema.defaults import with_defaults
from embedded_kubeapi.schema.prune import pruned
from embedded_kubeapi.schema.rules import check_rules, compile_rules
from embedded_kubeapi.schema.values import check_values

# After one of these, rules would judge a value they cannot read (apiextensions-apiserver, hasBlockingErr).
_BLOCKING = {
    "FieldValueNotSupported",
    "FieldValueRequired",
    "FieldValueTooLong",
    "FieldValueTooMany",
    "FieldValueTypeInvalid",
}
_NOT_CHECKED = FieldError(
    "FieldValueInvalid",
    "<nil>",
    "Invalid value: null: some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation",
)


class Schema:
    """A CRD version's `openAPIV3Schema`.

    Args:
        document: the schema as written.

    Raises:
        RuleError: a rule cannot be compiled.
    """

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document
        self._rules = compile_rules(document)

    def clean(self, obj: Obj) -> tuple[Obj, list[str]]:
        """A copy without unknown fields and with defaults, and the paths of the unknown fields."""
        unknown: list[str] = []
        kept = pruned(self.document, obj, "", unknown, resource=True)
        return with_defaults(self.document, kept), unknown

    def check(self, obj: Obj, old: Obj | None, found: Sequence[FieldError] = ()) -> list[FieldError]:
        """Returns all errors in an object.

        Args:
            obj: the object.
            old: what it replaces, for rules with `oldSelf`.
            found: what is known to be wrong with its metadata; rules are not evaluated beside some errors.
        """
        errors: list[FieldError] = []
        check_values(self.document, obj, "", errors, old)
        if self._rules is None:
            return errors
        if any(error.reason in _BLOCKING for error in (*found, *errors)):
            return [*errors, _NOT_CHECKED]
        return errors + check_rules(self._rules, obj, old)
