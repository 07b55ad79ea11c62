"""Calls that are approved before they are asked for: `Chain.spec.preApproved`.

Decision: an entry is an approval by its author, who must have the verb `approve` on the server. The policy
`tarsy-approve` lets people write entries in their own name only; where it is not in force, no entry counts.
"""

from __future__ import annotations

from pydantic import Field

from tarsy.resources.schema import LabelName, Model, Time, ToolName
from tarsy.resources.v1alpha1.approval_settings import Expression
from tarsy.resources.v1alpha1.common import Author, ServerName

MAX_PRE_APPROVED = 4
MAX_DAYS = 30
"""Time ahead up to which an entry counts."""


class PreApproval(Model):
    """Calls of one tool that count as approved by the author of this entry."""

    server: ServerName = Field(description="MCPServer.")
    server_namespace: LabelName | None = Field(
        default=None, description="Namespace of the MCPServer. Defaults to that of the Chain."
    )
    tool: ToolName = Field(description="Tool of the server.")
    when: Expression = Field(description="CEL expression over `arguments` that is true for the calls to approve.")
    until: Time = Field(description="Time at which the entry expires. It counts for at most the 30 days before.")
    author: Author = Field(
        description="Your own user, as authenticated by the API server, with the groups through which you have the "
        "verb approve, if any. The entry does not approve calls of runs that you started."
    )
