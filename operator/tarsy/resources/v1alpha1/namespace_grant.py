"""Defines the grant of a configuration object to other namespaces, by a label selector as Kubernetes has it."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints

from tarsy.resources.schema import LABEL_KEY, LABEL_VALUE, Model, Unique, ValidationRule


class LabelRequirement(Model):
    """A requirement on one label."""

    RULES: ClassVar[tuple[ValidationRule, ...]] = (
        ValidationRule(
            "self.operator in ['In', 'NotIn'] ? has(self.values) && size(self.values) > 0 "
            ": !has(self.values) || size(self.values) == 0",
            "values must be set for the operators In and NotIn, and only for them",
            lambda self: (self.operator in ("In", "NotIn")) == bool(self.values),
            field="values",
        ),
    )

    key: Annotated[str, StringConstraints(min_length=1, max_length=317, pattern=LABEL_KEY)] = Field(
        description="Label key."
    )
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"] = Field(
        description="Relation of the label to the values."
    )
    values: Annotated[tuple[Annotated[str, StringConstraints(max_length=63, pattern=LABEL_VALUE)], ...], Unique()] = (
        Field(default=(), max_length=64, description="Values for the operators In and NotIn.")
    )


class LabelSelector(Model):
    """Selects objects by their labels. All requirements must match; an empty selector matches everything."""

    match_labels: dict[str, Annotated[str, StringConstraints(max_length=63, pattern=LABEL_VALUE)]] = Field(
        default_factory=dict, max_length=32, description="Labels that must have exactly these values."
    )
    match_expressions: tuple[LabelRequirement, ...] = Field(
        default=(), max_length=32, description="Requirements on labels."
    )


class AllowedNamespaces(Model):
    """Grant of this object to other namespaces."""

    RULES: ClassVar[tuple[ValidationRule, ...]] = (
        ValidationRule(
            "(self.from == 'Selector') == has(self.selector)",
            "selector must be set when from is Selector, and only then",
            lambda self: (self.from_ == "Selector") == (self.selector is not None),
            field="selector",
        ),
    )

    from_: Literal["None", "Selector", "All"] = Field(
        default="None",
        alias="from",
        description="Namespaces that may use this object. None: only its own. Selector: namespaces that match "
        "the selector. All: every namespace.",
    )
    selector: LabelSelector | None = Field(default=None, description="Selects namespaces by their labels.")
