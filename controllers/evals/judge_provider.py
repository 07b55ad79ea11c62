"""Finds the LLMProvider of the judge of a suite.

Watches: nothing of its own. Decides: whether there is one. Writes: nothing.
"""

from tarsy.controllers.machinery.cache import Cache
from tarsy.controllers.runs.inputs import NotYet
from tarsy.resources.v1alpha1 import EvalSuite, LLMProvider


def find_judge(suite: EvalSuite, cache: Cache) -> LLMProvider:
    """Returns the LLMProvider of the judge of a suite.

    Raises:
        NotYet: there is none.
    """
    assert suite.spec.judge is not None
    namespace, name = suite.metadata.namespace, suite.spec.judge.llm_provider_ref.name
    found = cache.get(LLMProvider, namespace, name)
    if found is None:
        text = f"spec.judge.llmProviderRef.name: LLMProvider {namespace}/{name} does not exist or is invalid; create it"
        raise NotYet("JudgeMissing", text)
    return found
