"""Runs `tarsy`: the operator and its tools, one command each.

Commands import what they need when they run: the whole operator takes seconds to import, `tarsy crds` must not.
Errors that a user can correct end a command with one sentence on standard error and exit status 1.
"""

import typer

from tarsy.cli.commands import configuration, eval_import, eval_run, intake, record, services
from tarsy.cli.installed import add_installed
from tarsy.cli.plugin import add_investigation_commands, run_app
from tarsy.cli.version import add_version

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="TARSy operator: investigates alerts with chains of LLM agents.",
)
add_version(app, "tarsy")
app.command()(services.run)
app.command()(services.worker)
app.command(hidden=True)(services.worker_process)
app.command()(services.mcp_gateway)
add_installed(app)
evals = add_investigation_commands(app)
evals.command("run", cls=eval_run.MeasuringCommand)(eval_run.run)
evals.command("import")(eval_import.import_suite)
app.command()(configuration.ask)
app.command()(record.purge)
app.command()(configuration.plan)
app.command()(intake.route)
app.command()(intake.ledger)
app.command()(configuration.crds)


def main() -> None:
    """Runs the command `tarsy`."""
    run_app(app)
