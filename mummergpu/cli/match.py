"""The main job on the command line: find matches between queries and a reference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mummergpu.cli.format_options import alignment_options, main_files, output_targets
from mummergpu.cli.messages import COMPILATION
from mummergpu.cli.option_rules import (
    Params,
    run_options,
    search_options,
    text_request,
)
from mummergpu.cli.run_verb import CommandRun, on_cluster

if TYPE_CHECKING:
    from mummergpu.pipeline.options import MatchOptions


def run_match(**params: Any) -> None:
    """Run the main job with the options of the command line, given by their parameter names."""
    inputs = [params["reference"], *params["query"]]
    run = CommandRun(params, inputs, main_files(params))
    options = _match_options(params, run.command)
    run.wake_device(lambda: _backend_of(options))
    job = _load_job(params)
    with run.reported(options.search.uniqueness.value, COMPILATION) as (context, _):
        job(options, context)


def _backend_of(options: MatchOptions) -> str:
    from mummergpu.pipeline.backend_choice import backend_of_search

    return backend_of_search(options)


def _load_job(params: Params) -> Any:
    if params["cluster"] is not None:
        from mummergpu.cluster import match_queries as on_machines

        return on_cluster(on_machines.run_match, params)
    from mummergpu.pipeline import match

    return match.run


def _match_options(params: Params, command: str) -> MatchOptions:
    # These bring numpy: a device wakes up in the meantime.
    from mummergpu.cli.index_rules import index_options
    from mummergpu.drawing.picture import PictureStyle
    from mummergpu.pipeline.options import MatchOptions

    request = text_request(params)
    return MatchOptions(
        **run_options(params, command),
        query_paths=params["query"],
        paired=params["pair"],
        outputs=output_targets(params),
        index=index_options(params),
        search=search_options(params, request),
        style=request.style,
        sam=alignment_options(params),
        summary=params["multiqc"] is not None
        or (params["stats"] is not None and params["cluster"] is None),
        picture=params.get("picture") or PictureStyle(),
    )
