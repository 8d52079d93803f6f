"""`perdure metrics`: Grafana dashboards, alert rules, and the metrics of a database."""

from __future__ import annotations

from typing import Annotated

import typer

from perdure.signals.metrics.extra import missing_metrics
from perdure.signals.metrics.files import DESK, Board, alert_rules, dashboard
from perdure.surfaces.cli import options
from perdure.surfaces.cli.session import with_store

metrics = typer.Typer(help="Print dashboards, alert rules and metrics for Prometheus.", no_args_is_help=True)

DeskUrl = Annotated[
    str, typer.Option("--desk", metavar="URL", help="The address of the desk, for links.", show_default=DESK)
]


@metrics.command("dashboard")
def print_dashboard(
    board: Annotated[Board, typer.Argument(help="The whole cluster, or one kind at a time.")], desk: DeskUrl = DESK
) -> None:
    """Print a Grafana dashboard as JSON, to be imported or provisioned."""
    typer.echo(dashboard(board, desk), nl=False)


@metrics.command("rules")
def print_rules(desk: DeskUrl = DESK) -> None:
    """Print alert rules as YAML, for rule_files of Prometheus."""
    typer.echo(alert_rules(desk), nl=False)


@metrics.command("show")
def show(url: options.Url = None) -> None:
    """Print the cluster's metrics as the desk serves them, for example for a textfile collector."""
    try:
        from perdure.signals.metrics.making import cluster_exposition  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        raise missing_metrics(error) from None
    typer.echo(with_store(url, cluster_exposition).body, nl=False)
