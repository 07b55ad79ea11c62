"""Plans an investigation from files, without a cluster (`tarsy plan`).

Decision: the code of acceptance makes the plan from a catalog of the objects in the files, so the printed plan is the
one of the operator. It makes no claim about Secrets and servers, which only the cluster knows.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

import orjson
import yaml
from rich.console import RenderableType

from tarsy.cli.console import new_console
from tarsy.cli.plans.check import check_document, check_table, is_whole, plan_all
from tarsy.cli.plans.files import FileProblem, Manifests, read_files
from tarsy.cli.plans.tree import tree
from tarsy.controllers.readiness.masking import masking_errors
from tarsy.plan.catalog import ResourceCatalog
from tarsy.plan.check import check_references
from tarsy.plan.errors import FieldPath, PlanError, PlanInvalid
from tarsy.plan.resolve import Explained, PlanRequest, explain_plan
from tarsy.plan.select import NoChain, select
from tarsy.resources.meta import GROUP, AnyResource
from tarsy.resources.v1alpha1 import Alert, Investigation
from tarsy.resources.v1alpha1.alert import AlertContent

Format = Literal["text", "yaml", "json"]


def show_plan(
    paths: Sequence[Path], alert: Path | None, *, namespace: str, library_namespace: str, output: Format = "text"
) -> int:
    """Prints the plan to standard output and every error to standard error; returns the exit status.

    Args:
        paths: files and directories with the configuration.
        alert: the file with the Alert, or the Investigation, to plan for; None: every chain is planned for each of its
            alert types.
        namespace: the namespace of objects without one.
        library_namespace: the namespace of the library.
        output: text for people, yaml and json for programs.
    """
    manifests = read_files([*paths, *([alert] if alert else [])], namespace)
    catalog = ResourceCatalog(manifests.objects.values(), manifests.namespaces)
    explained, planned, errors = None, None, list[PlanError]()
    if not (manifests.objects or manifests.problems):
        named = ", ".join(str(path) for path in paths)
        manifests.problems.append(FileProblem(named, "", f"hold no object of {GROUP}; name files with configuration"))
    elif alert is None:
        planned, errors = plan_all(manifests, catalog, library_namespace)
    elif (run := _run_in(alert, manifests)) is not None:
        try:
            explained = _explain(run, catalog, manifests, library_namespace)
        except PlanInvalid as invalid:
            errors += invalid.errors
    for obj in manifests.objects.values():
        errors += check_references(obj, catalog)
        errors += masking_errors(obj)
    found = (manifests.problem(error) for error in dict.fromkeys(errors))
    problems = [*manifests.problems, *(problem for problem in found if problem is not None)]
    if explained is not None:
        _print(tree(explained), plan_document(explained), output)
    elif planned:
        _print(check_table(planned), check_document(planned), output)
    for problem in dict.fromkeys(problems):
        sys.stderr.write(f"{problem}\n")
    return 1 if problems else 0


def _run_in(file: Path, manifests: Manifests) -> AnyResource | None:
    """Returns the only Alert or Investigation of a file."""
    kinds = (Investigation, Alert)
    there = [key for key, name in manifests.files.items() if Path(name).resolve() == file.resolve()]
    found = [manifests.objects[key] for key in there if isinstance(manifests.objects.get(key), kinds)]
    runs = [obj for obj in found if isinstance(obj, Investigation)] or found
    if len(runs) == 1:
        return runs[0]
    broken = any(key in manifests.broken for key in there)
    if not (broken and not runs) and file.exists():
        manifests.problems.append(
            FileProblem(str(file), "", f"holds {len(runs)} Alerts or Investigations to plan for; name a file with one")
        )
    return None


def _is_refused(run: AnyResource, manifests: Manifests) -> bool:
    """Returns whether the Alert or Investigation is invalid, so that no plan of it is printed."""
    return (run.KIND, run.metadata.namespace, run.metadata.name) in manifests.broken


def _explain(
    run: AnyResource, catalog: ResourceCatalog, manifests: Manifests, library_namespace: str
) -> Explained | None:
    namespace = run.metadata.namespace
    content: AlertContent | None = run.spec if isinstance(run, Alert) else None
    source, chain_ref, budget = FieldPath.of(run), None, None
    if isinstance(run, Investigation):
        spec = run.spec
        chain_ref = (spec.chain_ref.name, source / "chainRef" / "name") if spec.chain_ref else None
        budget = (spec.budget, source / "budget") if spec.budget else None
        if spec.alert is not None:
            content, source = spec.alert, source / "alert"
        elif spec.alert_ref is not None:
            alert = catalog.get(Alert, namespace, spec.alert_ref.name)
            if alert is None:
                at = source / "alertRef" / "name"
                raise PlanInvalid([at.error(f"there is no Alert {spec.alert_ref.name} in the files; add it")])
            content, source = alert.spec, FieldPath.of(alert)
    if content is None:  # its schema refuses it, as is reported
        return None
    chain = select(
        namespace=namespace,
        alert=content,
        catalog=catalog,
        library_namespace=library_namespace,
        source=source,
        chain_ref=chain_ref,
    )
    if isinstance(chain, NoChain):
        field, _, message = chain.message.partition(": ")
        raise PlanInvalid([PlanError(source.kind, source.namespace, source.name, field, message)])
    if _is_refused(run, manifests) or not is_whole(chain, namespace, manifests, catalog, library_namespace):
        return None
    return explain_plan(
        PlanRequest(
            namespace=namespace,
            alert=content,
            chain=chain,
            catalog=catalog,
            library_namespace=library_namespace,
            source=source,
            budget=budget,
        )
    )


def _print(shown: RenderableType, document: dict[str, Any], output: Format) -> None:
    match output:
        case "text":
            new_console().print(shown)
        case "json":
            sys.stdout.write(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode() + "\n")
        case "yaml":
            sys.stdout.write(yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=110))


def plan_document(explained: Explained) -> dict[str, Any]:
    """Returns the plan, its hash and the sources of its settings, for programs."""
    origins: Iterable[tuple[str, FieldPath]] = sorted(explained.origins.items())
    return {
        "planHash": explained.plan.digest,
        "plan": explained.plan.model_dump(mode="json"),
        "origins": {
            path: {"kind": at.kind, "namespace": at.namespace, "name": at.name, "field": at.path}
            for path, at in origins
        },
    }
