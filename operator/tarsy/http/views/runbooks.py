"""Models of the runbooks that Chains and InvestigationDefaults declare."""

from typing import Literal, Self

from pydantic import Field

from tarsy.http.models import View
from tarsy.http.views.common import NEXT_PAGE
from tarsy.http.views.skills import GitSourceView, SkillSource
from tarsy.resources.v1alpha1.chain import Chain
from tarsy.resources.v1alpha1.common import LocalRunbook
from tarsy.resources.v1alpha1.investigation_defaults import InvestigationDefaults


class RunbookView(View):
    """A runbook that an object declares, without its text."""

    kind: Literal["Chain", "InvestigationDefaults"] = Field(description="Kind of the object.")
    namespace: str
    name: str = Field(description="Name of the object.")
    source: SkillSource = Field(description="Where the text is.")
    config_map: str | None = Field(description="Name and key of the ConfigMap, of source ConfigMap.")
    git: GitSourceView | None = Field(description="The file, of source Git.")

    @classmethod
    def of(cls, found: Chain | InvestigationDefaults, runbook: LocalRunbook) -> Self:
        """Converts the runbook of an object."""
        ref = runbook.config_map_key_ref
        return cls(
            kind=found.kind,
            namespace=found.metadata.namespace,
            name=found.metadata.name,
            source="Git" if runbook.git is not None else "Inline" if ref is None else "ConfigMap",
            config_map=None if ref is None else f"{ref.name}/{ref.key}",
            git=GitSourceView.of(runbook.git),
        )


class RunbookList(View):
    """Runbooks, sorted by namespace, kind and name."""

    items: tuple[RunbookView, ...]
    next: str | None = Field(alias="continue", default=None, description=NEXT_PAGE)


class RunbookTextView(RunbookView):
    """A runbook with its text."""

    text: str | None = Field(description="The text. Null: it cannot be read.")
    digest: str | None = Field(description="SHA-256 of the text, in hex.")
    problem: str | None = Field(default=None, description="Why the text cannot be read.")
