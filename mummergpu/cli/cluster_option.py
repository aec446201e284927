"""The option that runs a command on several machines."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from mummergpu.cli.option_rules import Params

if TYPE_CHECKING:
    from mummergpu.cluster.options import ClusterOptions


def cluster_option() -> click.Option:
    """Return a new ``--cluster``."""
    return click.Option(
        ["--cluster"],
        metavar="CLUSTER",
        help="Work on a cluster of Dask, with the same output: tcp://HOST:PORT of its scheduler, "
        "local:N for N processes here, or slurm:FILE with options of dask-jobqueue (pip install "
        "'mummergpu[dask]').",
    )


def cluster_asked(params: Params) -> ClusterOptions | None:
    """Return the cluster that is asked for; the processes of this machine share the threads."""
    if params["cluster"] is None:
        return None
    from dataclasses import replace

    from mummergpu.cluster.options import ClusterOptions

    asked = ClusterOptions(params["cluster"])
    if asked.processes is None:
        return asked
    return replace(asked, threads=max(1, params["threads"] // asked.processes))


def on_cluster(job: Callable[..., Any], params: Params) -> Callable[..., Any]:
    """Return a job of `mummergpu.cluster`, with the cluster that is asked for."""
    return partial(job, cluster=cluster_asked(params))
