"""Prints the plan that an alert would follow in the cluster (`kubectl tarsy plan`)."""

from rich.tree import Tree

from tarsy.cli.output import Output, beside, for_programs, printer, write_output
from tarsy.cli.plans.tree import plan_tree
from tarsy.client.api import TarsyClient
from tarsy.client.plain_text import plain
from tarsy.http.views.plans import OriginView, PlanNode, PlanQuestion, PlanView
from tarsy.plan.errors import FieldPath
from tarsy.plan.outline import OutlineNode, Setting


async def show_planned(client: TarsyClient, alert_type: str, chain: str | None, output: Output) -> int:
    """Prints the plan; returns the exit status, 1 if no investigation would start.

    Args:
        client: the API; the alert would be in its namespace.
        alert_type: type of the alert.
        chain: name of the chain; None: it is selected by the type.
        output: for people, or the format for programs.

    Raises:
        ApiUseError: the plan may not be read.
    """
    found = await client.plan(client.namespace, PlanQuestion.model_validate({"alertType": alert_type, "chain": chain}))
    if for_programs(output):
        write_output(found, output)
    else:
        _print(found)
    return 1 if found.errors else 0


def _print(found: PlanView) -> None:
    if found.tree is not None:
        printer().print(tree_of(found.tree))
    for error in found.errors:
        beside().print(plain(error))


def tree_of(node: PlanNode) -> Tree:
    """Renders a plan as `tarsy plan` does, with what is wrong with its objects."""
    return plan_tree(_outline(node))


def _outline(node: PlanNode) -> OutlineNode:
    settings = [
        one
        for row in node.settings
        for one in (
            Setting(row.name, plain(row.value), _field(row.origin)),
            *(Setting("warning", plain(text), _field(row.origin)) for text in row.warnings),
        )
    ]
    warnings = [f"warning: {plain(text)}" for text in node.warnings]
    parts = [_outline(part) for part in node.parts]
    return OutlineNode(
        node.what, node.name, node.note, settings=settings, sentences=[*node.sentences, *warnings], parts=parts
    )


def _field(at: OriginView | None) -> FieldPath | None:
    return None if at is None else FieldPath(at.kind, at.namespace, at.name, at.field)
