"""A browser without a window: what it makes of a page, what it complains of, what it asks for."""

import json
import subprocess
from dataclasses import dataclass

OF_THE_BROWSER = "not an origin"
"""What the log names as the origin of a request that no page has made."""

SWITCHES = (
    # Continuous integration runs as root in a container with a small /dev/shm.
    *("--headless", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--disable-default-apps"),
    *("--disable-extensions", "--no-first-run", "--enable-logging=stderr", "--dump-dom"),
    *("--virtual-time-budget=10000", "--window-size=1200,900"),
    # Nothing leaves this machine.
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
)


@dataclass(frozen=True)
class Visit:
    """What came of opening a page: how it was in the end, and what it made the browser do."""

    document: str
    console: list[str]
    """What was written to its console: by its scripts, or by the browser about it."""
    requests: set[str]
    """The addresses in the network that it made the browser ask for."""


def visit(browser, page, folder):
    """Open a page; `folder` takes the browser's own files."""
    folder.mkdir(exist_ok=True)
    log = folder / "requests.json"
    address = page.resolve().as_uri()

    def run(profile):
        own = [f"--user-data-dir={folder / profile}", f"--log-net-log={log}"]
        words = [browser, *SWITCHES, *own, address]
        return subprocess.run(words, capture_output=True, text=True, timeout=100, check=True)

    try:
        done = run("profile")
    except subprocess.TimeoutExpired:
        # Chromium sometimes hangs when it starts with a new profile, before it opens a page.
        done = run("another profile")
    console = [line for line in done.stderr.splitlines() if ":CONSOLE" in line]
    return Visit(done.stdout, console, requested(log))


def requested(log):
    """Return the addresses in the browser's log that a page asked for, not the browser itself.

    Files are not in this log.
    """
    events = json.loads(log.read_text())["events"]
    parameters = [event.get("params", {}) for event in events]
    asked = [one for one in parameters if one.get("initiator", OF_THE_BROWSER) != OF_THE_BROWSER]
    return {one["url"] for one in asked if "url" in one}
