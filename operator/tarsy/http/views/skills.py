"""Models of Skills, with the text that the next run gets."""

from typing import Literal, Self

from pydantic import Field

from tarsy.http.models import View
from tarsy.http.views.common import NEXT_PAGE
from tarsy.http.views.configuration import ConfiguredView, configured_fields
from tarsy.resources.v1alpha1.git_source import GitSource
from tarsy.resources.v1alpha1.skill import AppliesTo, Skill

SkillSource = Literal["Inline", "ConfigMap", "Git"]


class GitSourceView(View):
    """A file of a commit of a Git repository."""

    url: str
    commit: str
    path: str

    @classmethod
    def of(cls, found: GitSource | None) -> Self | None:
        """Converts a source; None without one."""
        return None if found is None else cls(url=found.url, commit=found.commit, path=found.path)


class SkillView(ConfiguredView):
    """A Skill, without its text."""

    description: str = Field(description="What the skill does, and when to use it.")
    source: SkillSource = Field(description="Where the text is.")
    git: GitSourceView | None = Field(description="The file, of source Git.")
    applies_to: str = Field(description="Its rules in brief. Empty: it is used where it is named only.")
    allowed_tools: tuple[str, ...] | None = Field(
        description="Tools that may be called while the skill is loaded. Null: all."
    )
    digest: str | None = Field(description="SHA-256 of the text, in hex. Null until it was read.")
    size_bytes: int | None = Field(description="Bytes of the text. Null until it was read.")

    @classmethod
    def of(cls, found: Skill) -> Self:
        """Converts a Skill."""
        spec, status = found.spec, found.status
        return cls(
            **configured_fields(found),
            description=spec.description,
            source="Inline" if spec.body is not None else "Git" if spec.git is not None else "ConfigMap",
            git=GitSourceView.of(spec.git),
            applies_to=_in_brief(spec.applies_to),
            allowed_tools=spec.allowed_tools,
            digest=status.digest,
            size_bytes=status.size_bytes,
        )


class SkillList(View):
    """Skills, sorted by namespace and name."""

    items: tuple[SkillView, ...]
    next: str | None = Field(alias="continue", default=None, description=NEXT_PAGE)


class SkillTextView(View):
    """The text of a Skill as the next run gets it."""

    namespace: str
    name: str
    description: str
    source: SkillSource = Field(description="Where the text is.")
    git: GitSourceView | None = Field(description="The file, of source Git.")
    text: str | None = Field(description="The text. Null: it cannot be read.")
    digest: str | None = Field(description="SHA-256 of the text, in hex.")
    problem: str | None = Field(default=None, description="Why the text cannot be read.")


def _in_brief(rule: AppliesTo | None) -> str:
    if rule is None:
        return ""
    labels = [f"{name}={value}" for name, value in sorted(rule.workload_labels.items())]
    parts = (("type", rule.alert_types), ("namespace", rule.namespaces), ("labels", labels))
    return "; ".join(f"{name} {', '.join(values)}" for name, values in parts if values)
