"""Lets a process believe that it runs on another processor."""

CLAIM = """
import sys
from llvmlite import binding
from mummergpu.runtime import processors
processors._DESCRIPTION = sys.argv.pop(1)
binding.get_host_cpu_name = lambda: "nehalem"
"""
"""The first lines of a program; its first argument is a file from `describe`."""


def describe(path, flags):
    """Write what Linux would tell of a processor with these features; return the file."""
    named = {"vendor_id": "Nobody", "cpu family": "6", "model": "1", "model name": "Claimed"}
    lines = {**named, "stepping": "1", "flags": b" ".join(sorted(flags)).decode()}
    path.write_text("".join(f"{name}\t: {value}\n" for name, value in lines.items()) + "\n")
    return path
