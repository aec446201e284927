"""The start of the process: ``mummergpu`` and ``python -m mummergpu`` do the same.

The imports take some tenths of a second. An interrupt in that time must also end with one line,
so the signal handlers are set before anything else is imported.
"""

import os


def run() -> None:
    """Run the command line, and end the process with its exit code.

    Imports above this function happen before the signal handlers are set. ``os`` costs nothing
    there: the interpreter has already imported it.
    """
    try:
        from mummergpu.cli.exit_on_signal import end_at_signals

        end_at_signals()
    except KeyboardInterrupt:
        os.write(2, b"mummergpu: interrupted\n")
        os._exit(130)
    # Otherwise numpy starts a thread on each processor when it is imported, for matrix operations,
    # of which this package has a single small one.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from mummergpu.cli.main import run as run_command_line

    run_command_line()


if __name__ == "__main__":
    run()
