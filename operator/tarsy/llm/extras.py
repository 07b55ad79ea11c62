"""The packages that only some providers need, and the command that installs them.

Decision: whether one is there is asked without importing it, so that a reconciler can ask too.
"""

from importlib.util import find_spec

from tarsy.plan.model import Backend, ProviderPlan

_LANGCHAIN = {
    "anthropic": "langchain_anthropic",
    "google": "langchain_google_genai",
    "vertexai": "langchain_google_genai",
    "xai": "langchain_xai",
}
_EXTRAS = {"vertexai": "google"}


def missing_extra(provider: ProviderPlan) -> str | None:
    """What to install for a provider; None when all is there."""
    module = _LANGCHAIN.get(provider.type) if provider.backend is Backend.LANGCHAIN else None
    if module is None or find_spec(module) is not None:
        return None
    package = module.replace("_", "-")
    extra = _EXTRAS.get(provider.type, provider.type)
    return f"the package {package} is not installed here; install it with: pip install 'tarsy-operator[{extra}]'"
