"""Implements the Common Expression Language of CRD rules and admission policies, compiled to Python closures.

Our own, because an evaluation must cost microseconds: a write checks a dozen rules. It follows the language definition
(github.com/google/cel-spec) and the functions of kubernetes.io/docs/reference/using-api/cel as far as `library.py`
lists them. An evaluation has a budget (`budget.py`), so no rule can hold the server up. One thing is left out on
purpose: types are not checked before an expression runs (but see `schema/references.py`).
"""

from embedded_kubeapi.cel.errors import CelCostError, CelError, CelSyntaxError
from embedded_kubeapi.cel.evaluator import Program, compile_program

# Whatever an expression may fail with.
CEL_ERRORS = (CelError, CelCostError, CelSyntaxError)

__all__ = ["CEL_ERRORS", "CelCostError", "CelError", "CelSyntaxError", "Program", "compile_program"]
