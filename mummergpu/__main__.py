"""``python -m mummergpu`` is the same as ``mummergpu``."""

from mummergpu.cli.main import run

if __name__ == "__main__":
    run()
