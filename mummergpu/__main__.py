"""``python -m mummergpu`` is the same as ``mummergpu``."""

import sys

from mummergpu.cli import main

if __name__ == "__main__":
    sys.exit(main())
