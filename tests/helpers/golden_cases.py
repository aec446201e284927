"""What MUMmer 3.23 prints for small made sequences, kept so that it needs no MUMmer.

Run this file, with ``tests`` among the import paths and ``mummer`` installed, to make the
kept texts anew.
"""

import tempfile
from pathlib import Path

from helpers.mummer_comparison import fasta_of, in_our_order, mummer_text, record_names

FOLDER = Path(__file__).resolve().parent.parent / "golden"

CASES = {
    "all_of_one_record": "one.fa queries.fa -maxmatch -b -l 12",
    "all_of_several_records": "several.fa queries.fa -maxmatch -b -l 20",
    "forward_coordinates": "several.fa queries.fa -maxmatch -b -c -L -l 25",
    "reverse_only": "one.fa queries.fa -maxmatch -r -F -l 14",
    "reverse_forward_coordinates": "one.fa queries.fa -maxmatch -r -c -s -L -l 20",
    "unique_in_reference": "one.fa queries.fa -mumreference -b -L -l 12",
    "unique_in_several_records": "several.fa queries.fa -mumcand -b -s -l 10",
    "unique_in_both": "one.fa queries.fa -mum -b -c -F -L -s -l 10",
    "unique_in_both_of_several": "several.fa queries.fa -mum -b -l 8",
    "records_against_record": "one.fa several.fa -maxmatch -b -l 30",
    "record_against_records": "several.fa one.fa -mumreference -b -l 15",
    "single_bases": "tiny.fa tiny.fa -maxmatch -b -l 1",
    "longer_than_all": "tiny.fa queries.fa -maxmatch -b -L -l 60",
    "simulated_reads": "one.fa reads.fq -maxmatch -b -L -l 20",
    "simulated_reads_unique": "several.fa reads.fq -mumreference -b -c -l 16",
}
"""Names of kept texts: reference, queries and options."""


def mummers_text(binary, case, folder):
    """Return what MUMmer prints for a case, in our order; FASTQ is converted for it."""
    reference, queries, *flags = CASES[case].split()
    path = FOLDER / queries
    if path.suffix == ".fq":
        path = folder / "reads.fa"
        path.write_bytes(fasta_of((FOLDER / queries).read_bytes(), 1))
    text = mummer_text(binary, str(FOLDER / reference), [str(path)], " ".join(flags))
    return in_our_order(text, record_names(str(FOLDER / reference)), "-c" in flags)


def make_all():
    """Write the kept texts."""
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            (FOLDER / f"{case}.txt").write_bytes(mummers_text("mummer", case, Path(folder)))


if __name__ == "__main__":
    make_all()
