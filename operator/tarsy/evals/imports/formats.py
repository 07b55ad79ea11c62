"""Lists the formats that `tarsy eval import` reads."""

from collections.abc import Mapping
from typing import Final

from tarsy.evals.imports.cloud_opsbench import CLOUD_OPSBENCH
from tarsy.evals.imports.holmesgpt import HOLMESGPT
from tarsy.evals.imports.itbench import ITBENCH
from tarsy.evals.imports.opensre import OPENSRE
from tarsy.evals.imports.runlore import RUNLORE
from tarsy.evals.imports.source import CaseFormat

FORMATS: Final[Mapping[str, CaseFormat]] = {
    one.name: one for one in (CLOUD_OPSBENCH, OPENSRE, HOLMESGPT, RUNLORE, ITBENCH)
}
