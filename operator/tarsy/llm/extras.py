"""Describes the packages that only some providers need, and the command that installs them.

Decision: a package is looked for without importing it, so that a reconciler can ask too.
"""

from dataclasses import dataclass
from importlib.util import find_spec


@dataclass(frozen=True, slots=True)
class OptionalPackage:
    """A package of an extra.

    Args:
        module: The module that it provides, with dots.
        extra: The extra of tarsy-operator that installs it.
    """

    module: str
    extra: str

    @property
    def remedy(self) -> str:
        """The error message where it is not installed."""
        package = self.module.replace("_", "-").replace(".", "-")
        return f"package {package} is not installed; install it with: pip install 'tarsy-operator[{self.extra}]'"

    def missing(self) -> str | None:
        """Returns the error message, or None where the package is installed; imports nothing but parent packages."""
        try:
            return None if find_spec(self.module) else self.remedy
        except (ModuleNotFoundError, ValueError):
            return self.remedy
