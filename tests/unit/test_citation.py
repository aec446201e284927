"""How the software is cited: the file that says so agrees with the package."""

import re
from pathlib import Path

import mummergpu

ROOT = Path(__file__).resolve().parents[2]


def test_the_citation_is_of_this_version_and_address():
    text = (ROOT / "CITATION.cff").read_text()
    fields = dict(re.findall(r"(?m)^([a-z-]+): (\S.*)$", text))
    assert fields["version"] == mummergpu.__version__
    project = (ROOT / "pyproject.toml").read_text()
    assert f'Source = "{fields["repository-code"]}"' in project
    assert f'license = "{fields["license"]}"' in project
