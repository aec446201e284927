"""The list of faults that tests must catch, and how one is put in."""

import re
import tomllib
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]


class Fault(NamedTuple):
    """A fault, and the tests that must fail with it, as ``folder::function``."""

    name: str
    file: str
    before: str
    after: str
    tests: list[str]

    def put_into(self, root):
        """Put the fault into a tree; return what stood in the file before."""
        path = root / self.file
        sound = path.read_text()
        assert sound.count(self.before) == 1, f"{self.file} does not have once: {self.before}"
        path.write_text(sound.replace(self.before, self.after))
        return sound

    def nodes(self, root):
        """The tests of a tree as pytest names them, wherever in their folder they are."""
        return [node_of(root, test) for test in self.tests]


def faults():
    """All faults."""
    with (ROOT / "tests/mutations/faults.toml").open("rb") as file:
        return [Fault(**fault) for fault in tomllib.load(file)["fault"]]


def node_of(root, test):
    """The one test of a name in a folder of tests, as pytest names it."""
    folder, name = test.split("::")
    pattern = re.compile(rf"^def {name}\(", re.MULTILINE)
    files = (root / "tests" / folder).rglob("test_*.py")
    (found,) = [path for path in sorted(files) if pattern.search(path.read_text())]
    return f"{found.relative_to(root).as_posix()}::{name}"
