"""Measures a chain of the library with a real model on the incidents (`tarsy bench incidents`).

The engine, the model and the Kubernetes tools are the real ones, in one process; the objects are those of the incident.

| exit status | meaning |
|---|---|
| 0 | measured, whatever was found |
| 2 | an input is wrong, and nothing was measured |
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from yaml import YAMLError

from tarsy.cli.console import new_console
from tarsy.cli.evals.plans import Configuration, missing_rates, plan_cases
from tarsy.cli.evals.run import Output, Overrides, key_problems, measure_cases, write_files
from tarsy.cli.plans.files import Manifests, read_files
from tarsy.evals.suite import Suite, SuiteFile
from tarsy.masking import Maskers
from tarsy.plan.library import LIBRARY_NAMESPACE
from tarsy.resources.v1alpha1 import LLMProvider
from tarsy.runtime.in_process.sample import PlannedCase
from tarsy_dev.incidents.cases import case_of, planned
from tarsy_dev.incidents.corpus import Incident, load_incident
from tarsy_dev.incidents.rules import measure
from tarsy_dev.incidents.table import bench_table

_WRONG_INPUT = 2
_PROVIDER = "default"
"""Name of the LLMProvider that the chains of the library use."""


class WrongInput(Exception):
    """An input is wrong; each argument is a sentence that says what to do."""


@dataclass(frozen=True, slots=True)
class Bench:
    """Holds the subject of the measurement.

    Attributes:
        corpus: folder with `cases` and `noise`.
        provider: file with one LLMProvider.
        library: folder with the library.
        chain: name of a Chain of the library.
        limit: maximum number of incidents; None: all.
    """

    corpus: Path
    provider: Path
    library: Path
    chain: str
    limit: int | None = None


async def bench_incidents(
    bench: Bench, overrides: Overrides, outputs: Sequence[Output] = (), keys: Mapping[str, str] | None = None
) -> int:
    """Measures the incidents, and prints the tables; returns the exit status.

    Args:
        bench: what is measured.
        overrides: samples side by side, and budget.
        outputs: files for programs.
        keys: environment variable of each Secret's API key, by name of the Secret.
    """
    limits = overrides.applied(SuiteFile())
    try:
        incidents = find_incidents(bench.corpus, bench.limit)
        suite = Suite(tuple(map(case_of, incidents)))
        cases = _plan(bench, incidents, suite, manifests_of(bench))
        problems = key_problems(cases, keys or {})
        if limits.budget is not None and limits.budget.cost_usd is not None:
            problems += missing_rates(cases)
        if problems:
            raise WrongInput(*problems)
    except WrongInput as error:
        for sentence in error.args:
            sys.stderr.write(f"{sentence}\n")
        return _WRONG_INPUT
    result = await measure_cases(cases, suite, limits, keys=keys or {})
    rules = {incident.name: measure(incident) for incident in incidents}
    piped = any(output.file is None for output in outputs)
    new_console(sys.stderr if piped else sys.stdout).print(bench_table(result.cases, rules))
    write_files(result, outputs)
    return 0


def find_incidents(corpus: Path, limit: int | None = None) -> Sequence[Incident]:
    """Returns the incidents of a folder; with a limit, evenly spread over all names.

    Raises:
        WrongInput: there are none, or one cannot be read.
    """
    paths = sorted((corpus / "cases").glob("*.yaml"))
    if not paths:
        raise WrongInput(f"{corpus}: has no cases/*.yaml; give the folder tests/incidents of a checkout of TARSy")
    count = min(limit or len(paths), len(paths))
    found = []
    for path in (paths[place * len(paths) // count] for place in range(count)):
        try:
            found.append(load_incident(path))
        except (KeyError, TypeError, ValueError, OSError, YAMLError) as error:
            why = str(error).partition("\n")[0]
            sentence = f"{path}: is no incident ({type(error).__name__}: {why}); take the file of a checkout"
            raise WrongInput(sentence) from None
    return found


def manifests_of(bench: Bench) -> Manifests:
    """Returns the library, with the given LLMProvider as the one that its chains use.

    Raises:
        WrongInput: the library is not there, or the file has not exactly one valid LLMProvider.
    """
    if not bench.library.is_dir():
        raise WrongInput(f"{bench.library}: there is no library; run the command in a checkout of TARSy")
    given = read_files([bench.provider], LIBRARY_NAMESPACE)
    if given.problems:
        raise WrongInput(*map(str, given.problems))
    providers = [one for one in given.objects.values() if isinstance(one, LLMProvider)]
    if len(providers) != 1:
        raise WrongInput(f"{bench.provider}: has {len(providers)} objects of kind LLMProvider; give a file with one")
    meta = providers[0].metadata.model_copy(update={"name": _PROVIDER, "namespace": LIBRARY_NAMESPACE})
    manifests = read_files([bench.library], LIBRARY_NAMESPACE)
    identity = (LLMProvider.KIND, LIBRARY_NAMESPACE, _PROVIDER)
    manifests.objects[identity] = providers[0].model_copy(update={"metadata": meta})
    manifests.files[identity] = str(bench.provider)
    return manifests


def _plan(bench: Bench, incidents: Sequence[Incident], suite: Suite, manifests: Manifests) -> list[PlannedCase]:
    maskers, made, problems = Maskers(), list[PlannedCase](), list[str]()
    for incident, case in zip(incidents, suite.cases, strict=True):
        configuration = Configuration([bench.provider], incident.namespace, LIBRARY_NAMESPACE, bench.chain)
        found = plan_cases(Suite((case,)), configuration, manifests)
        problems += found.problems
        made += [planned(incident, one.case, one.plan, maskers) for one in found.cases]
    if problems:
        raise WrongInput(*dict.fromkeys(problems))
    return made
