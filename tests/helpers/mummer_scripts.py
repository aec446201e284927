"""MUMmer's scripts in a folder of their own, in which ``mummer`` may be this program."""

import shutil
import stat
import sys
from pathlib import Path

import mummergpu

FOLDER = "/usr/bin"
"""Where Debian keeps the programs and scripts, as a line of each script says."""

SCRIPTS = ("nucmer", "promer", "dnadiff", "run-mummer1", "run-mummer3")
PROGRAMS = (
    *("mgaps", "gaps", "combineMUMs", "mummer-annotate"),
    *("delta-filter", "show-coords", "show-diff", "show-snps"),
)


def write_launcher(path):
    """Write what pip installs as ``mummergpu``: a script that starts this very package."""
    package = Path(mummergpu.__file__).parent.parent
    path.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(package)!r})\n"
        "from mummergpu.__main__ import run\nrun()\n"
    )
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def copy_scripts(folder, mummer):
    """Fill a folder with MUMmer's scripts and programs, and a link ``mummer`` to a program."""
    folder.mkdir()
    for name in PROGRAMS:
        (folder / name).symlink_to(f"{FOLDER}/{name}")
    for name in SCRIPTS:
        text = Path(FOLDER, name).read_text()
        for line in (f'my $BIN_DIR = "{FOLDER}";', f"bindir={FOLDER}\n"):
            text = text.replace(line, line.replace(FOLDER, str(folder)))
        assert str(folder) in text
        (folder / name).write_text(text)
        shutil.copymode(f"{FOLDER}/{name}", folder / name)
    (folder / "mummer").symlink_to(mummer)
    return folder
