"""Plans the cases of a suite from files, without a cluster: the code of acceptance, as for `tarsy plan`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from tarsy.cli.plans.check import is_whole
from tarsy.cli.plans.files import Manifests, read_files
from tarsy.controllers.readiness.masking import masking_errors
from tarsy.controllers.readiness.provider_checks import provider_plan_of
from tarsy.evals.cases import FrozenJudge, freeze_judge
from tarsy.evals.suite import Suite, SuiteCase
from tarsy.evidence.alerted import alert_labels
from tarsy.masking import default_masker
from tarsy.plan.catalog import ResourceCatalog
from tarsy.plan.check import check_references
from tarsy.plan.errors import FieldPath, PlanError, PlanInvalid
from tarsy.plan.model import Plan
from tarsy.plan.resolve import PlanRequest, explain_plan
from tarsy.plan.select import NoChain, select
from tarsy.plan.skills import fits_labels, with_skills
from tarsy.resources.meta import GROUP
from tarsy.resources.v1alpha1.alert import AlertContent
from tarsy.resources.v1alpha1.judge import SuiteJudge
from tarsy.resources.v1alpha1.llm_provider import LLMProvider
from tarsy.runtime.in_process.sample import PlannedCase
from tarsy.runtime.in_process.suite_run import providers


@dataclass(frozen=True, slots=True)
class Configuration:
    """Holds the source of the plans.

    Attributes:
        files: files and directories with the configuration.
        namespace: of the runs, and of objects without one.
        library_namespace: namespace of the library.
        chain: name of the Chain for all cases; None: each alert type selects its own.
    """

    files: Sequence[Path]
    namespace: str
    library_namespace: str
    chain: str | None = None


@dataclass(slots=True)
class PlannedSuite:
    """The cases with their plans, a sentence for each error, and the judge; None: the suite has none."""

    cases: list[PlannedCase] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    judge: FrozenJudge | None = None


def plan_suite(suite: Suite, configuration: Configuration) -> PlannedSuite:
    """Plans all cases.

    Args:
        suite: the cases.
        configuration: where the plans come from.
    """
    return plan_cases(suite, configuration, read_files(configuration.files, configuration.namespace))


def plan_cases(suite: Suite, configuration: Configuration, manifests: Manifests) -> PlannedSuite:
    """Plans all cases with the objects of manifests that were read.

    Args:
        suite: the cases.
        configuration: where the plans come from; its files are only named in errors.
        manifests: the objects.
    """
    catalog = ResourceCatalog(manifests.objects.values(), manifests.namespaces)
    planned, errors = PlannedSuite(), list[PlanError]()
    if not (manifests.objects or manifests.problems):
        named = ", ".join(str(path) for path in configuration.files)
        planned.problems.append(f"{named}: hold no object of {GROUP}; name files with configuration")
        return planned
    for case in suite.cases:
        try:
            if (plan := _plan(case, configuration, manifests, catalog)) is not None:
                planned.cases.append(PlannedCase(case, plan))
        except PlanInvalid as invalid:
            errors += invalid.errors
        except ValidationError as error:
            where = error.errors(include_url=False)[0]
            planned.problems.append(f"case {case.name}: alert.type: {where['msg']}; record the case again")
    if suite.settings.judge is not None:
        planned.judge = _judge(suite, suite.settings.judge, configuration.namespace, catalog, planned.problems)
    for obj in manifests.objects.values():
        errors += [*check_references(obj, catalog), *masking_errors(obj)]
    found = (manifests.problem(error) for error in dict.fromkeys(errors))
    problems = [*manifests.problems, *(problem for problem in found if problem is not None)]
    planned.problems += [str(problem) for problem in dict.fromkeys(problems)]
    return planned


def missing_rates(cases: Collection[PlannedCase]) -> Iterator[str]:
    """Yields a sentence for each provider without rates: a budget in US dollars cannot be kept with it."""
    refs = {one.ref.name for case in cases for one in providers(case.plan) if one.rates is None}
    for name in sorted(refs):
        yield (
            f"LLMProvider {name}: rates: not known for its model, so the budget costUSD cannot be enforced; set "
            "spec.rates, or use a budget of tokens"
        )


def _judge(
    suite: Suite, judge: SuiteJudge, namespace: str, catalog: ResourceCatalog, problems: list[str]
) -> FrozenJudge | None:
    """Returns the judge of the suite; None: its provider is not in the manifests, as is reported."""
    name = judge.llm_provider_ref.name
    provider = catalog.get(LLMProvider, namespace, name)
    if provider is None:
        text = f"suite.yaml: judge.llmProviderRef.name: LLMProvider {namespace}/{name} is in no file; add it"
        problems.append(text)
        return None
    labels = {case.name: case.labels for case in suite.cases}
    return freeze_judge(judge, provider_plan_of(provider), labels, default_masker().mask)


def _plan(case: SuiteCase, configuration: Configuration, manifests: Manifests, catalog: ResourceCatalog) -> Plan | None:
    """Returns the plan of a case; None: an object that it uses is invalid, as is reported.

    Raises:
        PlanInvalid: it cannot be planned.
    """
    namespace, library = configuration.namespace, configuration.library_namespace
    alert = AlertContent(alert_type=case.cassette.header.alert.type, data="-")
    source = FieldPath("case", namespace, case.name)
    chain = select(
        namespace=namespace,
        alert=alert,
        catalog=catalog,
        library_namespace=library,
        source=source,
        chain_ref=(configuration.chain, source / "--chain") if configuration.chain else None,
    )
    if isinstance(chain, NoChain):
        field_name, _, message = chain.message.partition(": ")
        raise PlanInvalid([PlanError(source.kind, namespace, case.name, field_name, message)])
    if not is_whole(chain, namespace, manifests, catalog, library):
        return None
    plan = explain_plan(
        PlanRequest(
            namespace=namespace, alert=alert, chain=chain, catalog=catalog, library_namespace=library, source=source
        )
    ).plan
    return _with_fitting_skills(plan, case)


def _with_fitting_skills(plan: Plan, case: SuiteCase) -> Plan:
    """Returns a plan with the skills that the labels of the alert permit.

    Raises:
        PlanInvalid: the text of one is not in the files.
    """
    labels = alert_labels(case.cassette.header.alert.data)
    skills = tuple(skill for skill in plan.skills if fits_labels(skill, labels))
    elsewhere = [skill for skill in skills if not skill.text]
    if elsewhere:
        message = "its text is not in the files; put it into spec.body to measure it here"
        raise PlanInvalid(
            FieldPath(
                one.ref.kind, one.ref.namespace, one.name, "spec.git" if one.git else "spec.configMapKeyRef"
            ).error(message)
            for one in elsewhere
        )
    return with_skills(plan, skills)
