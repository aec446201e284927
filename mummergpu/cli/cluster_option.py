"""The option that runs a command on several machines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import click


def cluster_option() -> click.Option:
    """Return a new ``--cluster``."""
    return click.Option(
        ["--cluster"],
        metavar="CLUSTER",
        help="Work on a cluster of Dask, with the same output: tcp://HOST:PORT of its scheduler, "
        "local:N for N processes here, each with a GPU of its own, or slurm:FILE with options of "
        "dask-jobqueue (pip install 'mummergpu[dask]').",
    )


def on_cluster(job: Callable[..., Any], params: Mapping[str, Any]) -> Callable[..., Any]:
    """Return a job of `mummergpu.cluster`, with the cluster that is asked for."""
    from mummergpu.cluster.options import ClusterOptions

    return partial(job, cluster=ClusterOptions.shared(params["cluster"], params["threads"]))
