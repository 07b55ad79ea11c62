"""The Common Expression Language of CRD rules and admission policies, compiled to Python closures.

Our own, because an evaluation must cost microseconds: a write checks a dozen rules. It follows the language definition
(github.com/google/cel-spec) and the functions of kubernetes.io/docs/reference/using-api/cel as far as `library.py`
lists them. Two things are left out on purpose: types are not checked before an expression runs, and there is no cost
budget.
"""

from tarsy.local.kubeapi.cel.errors import CelError, CelSyntaxError
from tarsy.local.kubeapi.cel.evaluator import Program, compile_program

__all__ = ["CelError", "CelSyntaxError", "Program", "compile_program"]
