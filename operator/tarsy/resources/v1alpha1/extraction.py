"""Values instead of text for results from outside: `MCPServer.spec.extraction`.

Decision: every value is bounded, and all but those of an enumeration occur in the result letter by letter. So an
extractor that obeys the text can choose among its words, and can say nothing of its own.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints

from tarsy.resources.schema import Model, ToolPattern, Unique, ValidationRule

FIELD_NAME = r"^[a-z][A-Za-z0-9_]*$"
MAX_IDENTIFIER, MAX_EXCERPT, MAX_FIELDS = 128, 200, 16
IDENTIFIER_LENGTH, QUOTE_LENGTH = 64, 80
"""Maximum characters of values whose field declares none."""

_EnumValue = Annotated[str, StringConstraints(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._-]*$")]


class ExtractedField(Model):
    """One value that is extracted from a result."""

    RULES: ClassVar[tuple[ValidationRule, ...]] = (
        ValidationRule(
            "(self.type == 'Enum') == has(self.values)",
            "set values for the type Enum, and for no other",
            lambda self: (self.type == "Enum") == (self.values is not None),
            field="values",
        ),
        ValidationRule(
            f"!has(self.maxLength) || self.type == 'Quote' || (self.type == 'Identifier' && self.maxLength <= "
            f"{MAX_IDENTIFIER})",
            f"set maxLength for the type Quote, or for Identifier (at most {MAX_IDENTIFIER}), and for no other",
            lambda self: (
                self.max_length is None
                or self.type == "Quote"
                or (self.type == "Identifier" and self.max_length <= MAX_IDENTIFIER)
            ),
            field="maxLength",
        ),
    )

    name: Annotated[str, StringConstraints(min_length=1, max_length=40, pattern=FIELD_NAME)] = Field(
        description="Name of the value, as agents see it."
    )
    type: Literal["Number", "Time", "Enum", "Identifier", "Quote"] = Field(
        description="Number: a decimal number. Time: a date, or a date with a time (ISO 8601 or RFC 2822). Enum: one "
        "of values. Identifier: a word without blanks. Quote: words of one line, exactly as in the result."
    )
    values: Annotated[tuple[_EnumValue, ...], Field(min_length=1, max_length=32), Unique()] | None = Field(
        default=None, description="Possible values, for the type Enum."
    )
    max_length: Annotated[int, Field(ge=1, le=MAX_EXCERPT)] | None = Field(
        default=None, description="Maximum characters. Defaults to 64 for Identifier and 80 for Quote."
    )
    max_items: Annotated[int, Field(ge=1, le=20)] = Field(default=1, description="Maximum number of such values.")
    description: Annotated[str, StringConstraints(max_length=256)] | None = Field(
        default=None, description="Meaning of the value, for the model that extracts it."
    )


class ExtractionRule(Model):
    """Values that are extracted from the results of some tools."""

    tools: Annotated[tuple[ToolPattern, ...], Field(min_length=1, max_length=256), Unique()] = Field(
        description="Tools. * matches any characters."
    )
    fields: Annotated[tuple[ExtractedField, ...], Field(min_length=1, max_length=MAX_FIELDS), Unique("name")] = Field(
        description="Values that agents get instead of the text."
    )
