"""Implements the Common Expression Language of CRD rules and admission policies, compiled to Python closures.

Our own, because an evaluation must cost microseconds: a write checks a dozen rules. It follows the language definition
(github.com/google/cel-spec) and the functions of kubernetes.io/docs/reference/using-api/cel as far as `library.py`
lists them. An evaluation has a budget of cost and, where asked for, of time (`budget.py`), so no rule can hold the
process up. One thing is left out on purpose: types are not checked before an expression runs.

Decision: one source for the whole project. `embedded_kubeapi.cel` is a link to this folder, because that distribution
imports nothing of TARSy and the image contains nothing of it; the modules import each other relatively, so that both
packages work. The libraries of the package registry were no alternative: the one in Python takes 1.5 ms for each item
of a macro and stops neither by cost nor by time, and a native one cannot be stopped at all.
"""

from .errors import CelCostError, CelError, CelSyntaxError
from .evaluator import Program, compile_program

# Whatever an expression may fail with.
CEL_ERRORS = (CelError, CelCostError, CelSyntaxError)

__all__ = ["CEL_ERRORS", "CelCostError", "CelError", "CelSyntaxError", "Program", "compile_program"]
