"""Renders the outline of a plan as a tree, with the source of each setting.

Decision: names come from untrusted objects, so they are printed as `Text`, which interprets nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from tarsy.plan.errors import FieldPath
from tarsy.plan.outline import OutlineNode, Setting, outline
from tarsy.plan.resolve import Explained

BUILT_IN = "built in"


def tree(explained: Explained) -> Tree:
    """Renders a plan as a tree."""
    return plan_tree(outline(explained))


def plan_tree(whole: OutlineNode) -> Tree:
    """Renders an outline as a tree."""
    root = Tree(Text(f"{whole.what} {whole.name}", style="bold"))
    root.add(_table(whole.settings, origin=False))
    for part in whole.parts:
        _add(root, part)
    return root


def _add(parent: Tree, node: OutlineNode) -> None:
    head = Text(node.what)
    if node.name:
        head.append(" ")
        head.append(node.name, style="bold")
    if node.note:
        style = "yellow" if node.what == "stage" else ""
        head.append(f"{'  ' if style else ' '}{node.note}", style=style)
    branch = parent.add(head)
    if node.settings:
        branch.add(_table(node.settings))
    for sentence in node.sentences:
        branch.add(Text(sentence))
    for part in node.parts:
        _add(branch, part)


def _table(rows: Sequence[Setting], *, origin: bool = True) -> Table:
    table = Table.grid(padding=(0, 2))
    for row in rows:
        cells = [Text(row.name), Text(row.value, style="cyan")]
        table.add_row(*cells, *([Text(_where(row.origin), style="dim")] if origin else []))
    return table


def _where(at: FieldPath | None) -> str:
    return BUILT_IN if at is None else f"{at.kind} {at.namespace}/{at.name} {at.path}"
