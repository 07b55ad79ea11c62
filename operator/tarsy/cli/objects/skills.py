"""Lists Skills, and prints the text of one (`kubectl tarsy skills`)."""

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from tarsy.cli.output import Output, for_programs, place_of_list, print_lines, write_list, write_output
from tarsy.client.api import TarsyClient, read_as
from tarsy.client.plain_text import one_line
from tarsy.client.refusals import READ_SKILLS
from tarsy.http.views.skills import SkillTextView, SkillView


async def list_skills(client: TarsyClient, namespace: str, output: Output) -> int:
    """Prints the skills of a namespace; returns the exit status.

    Args:
        client: the API.
        namespace: of the skills.
        output: for people, or the format for programs.

    Raises:
        ApiUseError: they may not be read.
    """
    found = await client.skills(namespace)
    write_list(found, output, skill_table, f"No skills in {place_of_list(namespace)}.")
    return 0


async def show_skill(client: TarsyClient, namespace: str, name: str, output: Output) -> int:
    """Prints the text of a skill; returns the exit status.

    Args:
        client: the API.
        namespace: of the skill.
        name: of the skill.
        output: for people, or the format for programs.

    Returns:
        0: printed. 1: the text cannot be read; the reason is printed.

    Raises:
        ApiUseError: the skill does not exist, or may not be read.
    """
    found = await read_as(client, SkillTextView, f"/namespaces/{namespace}/skills/{name}/text", READ_SKILLS)
    if for_programs(output):
        write_output(found, output)
    else:
        print_lines(text_lines(found))
    return int(found.text is None)


def skill_table(skills: Sequence[SkillView]) -> Table:
    """Returns the table of skills for people.

    Args:
        skills: the skills.
    """
    table = Table.grid(padding=(0, 2))
    table.add_row(*(Text(head) for head in ("NAME", "READY", "SOURCE", "DIGEST", "APPLIES TO", "DESCRIPTION")))
    for one in skills:
        ready = "?" if one.ready is None else "yes" if one.ready else "no"
        cells = (one.name, ready, one.source, (one.digest or "")[:12], one.applies_to, one.description)
        table.add_row(*(Text(one_line(cell, 200)) for cell in cells))
    return table


def text_lines(found: SkillTextView) -> list[str]:
    """Returns the lines of a skill for people.

    Args:
        found: the skill.
    """
    head = [f"Skill {found.namespace}/{found.name}: {one_line(found.description, 1024)}", f"source: {found.source}"]
    if found.git is not None:
        head.append(f"file: {one_line(found.git.url, 300)} {found.git.commit} {one_line(found.git.path, 300)}")
    if found.digest is not None:
        head.append(f"sha256: {found.digest}")
    if found.text is None:
        return [*head, one_line(found.problem or "", 1000)]
    return [*head, "", *found.text.splitlines()]
