"""The page of a report in a real browser: no request, no script error, every figure drawn."""

import json
import re

import pytest
from helpers.browser import visit
from helpers.sweeps import write_cpu_sweep, write_gpu_sweep

from mummergpu.cli.main import main

MEASURE = """
<pre id="measured"></pre>
<script>
console.log("measuring");
addEventListener("load", () => {
  const box = (one) => [one.getBoundingClientRect().width, one.getBoundingClientRect().height];
  document.getElementById("measured").textContent = JSON.stringify({
    figures: [...document.querySelectorAll("figure img")].map(box),
    images: [...document.querySelectorAll("img")].map((one) => one.naturalWidth),
  });
});
</script>
"""


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """The page of a report on two sweeps."""
    folder = tmp_path_factory.mktemp("page")
    write_gpu_sweep(folder / "study" / "gpu", name="<script>alert(1)</script>")
    write_cpu_sweep(folder / "study" / "cpu")
    assert main(["report", "-q", str(folder / "study"), "-o", str(folder / "out")]) == 0
    return folder / "out" / "report.html"


@pytest.fixture(scope="module")
def visited(browser_binary, report, tmp_path_factory):
    """The page, opened from a folder in which there is nothing else."""
    folder = tmp_path_factory.mktemp("alone")
    page = folder / "report.html"
    page.write_bytes(report.read_bytes())
    return visit(browser_binary, page, tmp_path_factory.mktemp("browser"))


def test_the_page_asks_for_nothing_and_complains_of_nothing(visited):
    assert visited.requests == set()
    assert visited.console == []
    assert "<h2>Summary</h2>" in visited.document
    assert "<script" not in visited.document
    targets = re.findall(r'\b(?:src|href|action|data)="([^"]*)"', visited.document)
    assert targets
    assert all(target.startswith(("#", "data:")) for target in targets)
    assert re.findall(r"url\((?!#)|@import", visited.document) == []


def test_figures_have_a_size(browser_binary, report, tmp_path):
    # The page itself allows no script.
    free = re.sub(r"<meta http-equiv[^>]*>", "", report.read_text())
    measured = report.parent / "measured.html"
    measured.write_text(free.replace("</body>", MEASURE + "</body>"))
    seen = visit(browser_binary, measured, tmp_path)
    assert len(seen.console) == 1
    assert "measuring" in seen.console[0]
    text = re.search(r'<pre id="measured">(.*?)</pre>', seen.document)
    assert text
    sizes = json.loads(text[1])
    assert len(sizes["figures"]) == len(sizes["images"]) == 9
    assert all(width > 300 and height > 100 for width, height in sizes["figures"])
    assert min(sizes["images"]) > 300


def test_what_a_page_must_not_do_is_noticed(browser_binary, tmp_path):
    page = tmp_path / "bad.html"
    page.write_text('<img src="http://127.0.0.1:9/figure.png"><script>undefined.property;</script>')
    seen = visit(browser_binary, page, tmp_path / "browser")
    assert "http://127.0.0.1:9/figure.png" in seen.requests
    assert any("TypeError" in line for line in seen.console)
