"""Where the process starts: ``mummergpu``, or ``python -m mummergpu``, which is the same.

An interrupt during the tenths of a second that the imports take must end in one line as well,
so the signals are seen to before anything else is imported.
"""

import os


def run() -> None:
    """Run the command line, and end the process with its exit code.

    What is imported above this function is imported before the signals are seen to; the
    interpreter has ``os`` already.
    """
    try:
        from mummergpu.cli.endings import end_at_signals

        end_at_signals()
    except KeyboardInterrupt:
        os.write(2, b"mummergpu: interrupted\n")
        os._exit(130)
    from mummergpu.cli.main import run as run_command_line

    run_command_line()


if __name__ == "__main__":
    run()
