"""Trees as text: the table of nodes, and the Graphviz graph of small trees."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np
import pytest
from helpers.in_memory import reference_of
from helpers.trees import LAYOUTS, PLAIN, WIDE, WIDE_LAYOUTS, layout_id

from mummergpu.errors import OptionError
from mummergpu.index.pages import plan_pages
from mummergpu.index.tree.build import build_page
from mummergpu.index.tree.decode import decode_nodes
from mummergpu.index.tree.layout import Layout
from mummergpu.index.tree.page import TreePage
from mummergpu.index.tree.text import (
    COLUMNS,
    MAX_DOT_BASES,
    NODES_AT_ONCE,
    TABLE_HEADER,
    check_dot_size,
    dot_text,
    edge_label,
    page_rows,
    table_text,
)
from mummergpu.runtime.stats import Stats

RECORDS = ["ACGTACGG", "ACGT", "NNACGTTT"]


def pages_of(records: list[str], layout: Layout, page_size: int = 1000) -> list[TreePage]:
    reference = reference_of(records)
    pages = plan_pages(reference.codes.size, page_size, 3)
    return [build_page(reference, page, layout, Stats()) for page in pages]


def whole(pieces: Iterable[bytes | np.ndarray]) -> str:
    return b"".join(bytes(piece) for piece in pieces).decode()


def rows_of(text: str) -> list[dict[str, str]]:
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    names = lines[0].split("\t")
    assert names == [name.decode() for name in COLUMNS]
    return [dict(zip(names, line.split("\t"), strict=True)) for line in lines[1:]]


def test_the_table_of_a_tree_drawn_by_hand() -> None:
    # ACNA: the root, A (of both suffixes), C; below A the leaves C$ and $.
    text = whole(table_text(pages_of(["ACNA"], PLAIN)))
    header = (
        TABLE_HEADER.decode() + "# page 0: bases 0 to 4 of the joined reference, counted from 0\n"
    )
    assert text == header + (
        "0\t0\t0\t0\t0\t-\t-\t0\t1\t2\t-\t-\t-\t-\t-\t-\n"
        "0\t1\t3\t4\t1\t0\t0\t0\t-\t3\t-\t-\t4\t-\t-\t-\n"
        "0\t2\t1\t2\t1\t0\t0\t1\t-\t-\t-\t-\t-\t1\t-\tA\n"
        "0\t3\t1\t2\t2\t1\t2\t1\t-\t-\t-\t-\t-\t0\t-\tN\n"
        "0\t4\t4\t4\t1\t1\t0\t1\t-\t-\t-\t-\t-\t3\t-\tN\n"
    )


def test_the_table_says_what_its_positions_are() -> None:
    assert TABLE_HEADER.startswith(b"# Positions count from 0, from the first base of the page")
    assert TABLE_HEADER.count(b"\n") == 2


@pytest.mark.parametrize("layout", LAYOUTS + WIDE_LAYOUTS, ids=layout_id)
def test_the_table_holds_every_field_of_every_node(layout: Layout) -> None:
    pages = pages_of(RECORDS, layout, 12)
    assert len(pages) > 1
    rows = rows_of(whole(table_text(pages)))
    assert len(rows) == sum(page.tree.node_count for page in pages)
    for page in pages:
        own = [row for row in rows if row["page"] == str(page.page.index)]
        columns = decode_nodes(page.tree)
        for number, row in enumerate(own):
            leaf = bool(columns.is_leaf[number])
            root = columns.addresses[number] == 0
            children = ["-" if child == 0 else str(child) for child in columns.children[:, number]]
            following = columns.next_leaves[number]
            assert row == {
                "page": str(page.page.index),
                "address": str(columns.addresses[number]),
                "edge_start": str(columns.edge_starts[number]),
                "edge_end": str(columns.edge_ends[number]),
                "string_depth": str(columns.string_depths[number]),
                "parent": "-" if root else str(columns.parents[number]),
                "suffix_link": "-" if root else str(columns.suffix_links[number]),
                "is_leaf": str(int(leaf)),
                **dict(zip("ACGT$", children, strict=True)),
                "leaf_id": str(columns.leaf_ids[number]) if leaf else "-",
                "next_leaf": "-" if following == 0 else str(following),
                "preceding_base": "ACGTN"[columns.flags[number] & 7] if leaf else "-",
            }


def test_both_formats_give_the_same_text() -> None:
    for text in (table_text, dot_text):
        narrow, wide = (whole(text(pages_of(RECORDS, layout, 12))) for layout in (PLAIN, WIDE))
        assert narrow == wide


def test_chains_of_leaves_can_be_followed_in_the_table() -> None:
    rows = {row["address"]: row for row in rows_of(whole(table_text(pages_of(["CA"] * 3, PLAIN))))}
    first = next(row for row in rows.values() if row["next_leaf"] != "-" and row["leaf_id"] == "6")
    second = rows[first["next_leaf"]]
    third = rows[second["next_leaf"]]
    assert [row["leaf_id"] for row in (second, third)] == ["3", "0"]
    assert third["next_leaf"] == "-"


def test_pages_may_come_in_groups() -> None:
    pages = pages_of(RECORDS, PLAIN, 12)
    in_groups = whole(table_text(pages[:1])) + whole(table_text(pages[1:]))
    assert in_groups == whole(table_text(pages))
    assert in_groups.count("address\t") == 1


def test_large_tables_come_in_pieces_of_bounded_size() -> None:
    bases = np.random.default_rng(2).choice(list("ACGT"), 40_000)
    (page,) = pages_of(["".join(bases)], PLAIN, 1 << 23)
    pieces = [bytes(piece) for piece in page_rows(page)]
    assert [piece.count(b"\n") for piece in pieces[1:-1]] == [NODES_AT_ONCE]
    rows = b"".join(pieces[1:]).decode().splitlines()
    assert len(rows) == page.tree.node_count > NODES_AT_ONCE
    addresses = [int(row.split("\t")[1]) for row in rows]
    assert addresses == list(range(page.tree.node_count))


NODE = re.compile(r'    (p\d+_n\d+) \[label="([^"]*)"(?:, shape=box)?\];')
EDGE = re.compile(
    r'    (p\d+_n\d+) -> (p\d+_n\d+) \[label="([ACGT]*(?:\.\.\d+\.\.[ACGT]+)?\$?)"\];'
)
LINK = re.compile(r"    (p\d+_n\d+) -> (p\d+_n\d+) \[style=dashed, constraint=false\];")
CHAIN = re.compile(r"    (p\d+_n\d+) -> (p\d+_n\d+) \[style=dotted, constraint=false\];")


def graph_of(text: str) -> tuple[dict[str, str], ...]:
    """Nodes with labels, edges by child, suffix links, chains; nothing else may be there."""
    lines = text.splitlines()
    assert lines[0] == 'digraph "suffix tree" {'
    assert lines[-1] == "}"
    assert text.count("{") == text.count("}")
    found: tuple[dict[str, str], ...] = ({}, {}, {}, {})
    for line in lines:
        if match := NODE.fullmatch(line):
            found[0][match[1]] = match[2]
        elif match := EDGE.fullmatch(line):
            found[1][match[2]] = f"{match[1]} {match[3]}"
        elif match := LINK.fullmatch(line):
            found[2][match[1]] = match[2]
        elif match := CHAIN.fullmatch(line):
            found[3][match[1]] = match[2]
        else:
            assert re.match(r"digraph|  node \[|  subgraph|    label=|  \}|\}", line), line
    return found


def test_the_graph_of_a_tree_drawn_by_hand() -> None:
    nodes, edges, links, chains = graph_of(whole(dot_text(pages_of(["ACNA"], PLAIN))))
    assert nodes == {
        "p0_n0": "0\\ndepth 0",
        "p0_n1": "1\\ndepth 1",
        "p0_n2": "2\\nleaf 1",
        "p0_n3": "3\\nleaf 0",
        "p0_n4": "4\\nleaf 3",
    }
    assert edges == {
        "p0_n1": "p0_n0 A",
        "p0_n2": "p0_n0 C$",
        "p0_n3": "p0_n1 C$",
        "p0_n4": "p0_n1 $",
    }
    assert links == {"p0_n1": "p0_n0", "p0_n2": "p0_n0", "p0_n3": "p0_n2", "p0_n4": "p0_n0"}
    assert chains == {}


@pytest.mark.parametrize("layout", LAYOUTS + WIDE_LAYOUTS, ids=layout_id)
def test_paths_in_the_graph_spell_the_suffixes(layout: Layout) -> None:
    pages = pages_of(RECORDS, layout, 12)
    nodes, edges, links, chains = graph_of(whole(dot_text(pages)))
    joined = "N".join(RECORDS)
    leaves = 0
    for page in pages:
        text = joined[page.page.begin : page.page.end]
        for node, label in nodes.items():
            if not node.startswith(f"p{page.page.index}_") or "leaf" not in label:
                continue
            path, above = "", node
            while not above.endswith("_n0"):
                above, _, bases = edges[above].partition(" ")
                path = bases + path
            suffix = int(label.split("leaf ")[1])
            assert path == text[suffix:].split("N")[0] + "$"
            leaves += 1
    assert leaves == sum(page.tree.leaf_count for page in pages)
    assert len(links) == len(edges) == len(nodes) - len(pages)
    assert all(edges[one].split()[0] == edges[other].split()[0] for one, other in chains.items())


def test_leaves_of_a_chain_are_tied_together() -> None:
    nodes, _, _, chains = graph_of(whole(dot_text(pages_of(["CA"] * 3, PLAIN))))
    numbers = {
        node: int(label.split("leaf ")[1]) for node, label in nodes.items() if "leaf" in label
    }
    pairs = sorted((numbers[one], numbers[other]) for one, other in chains.items())
    assert pairs == [(3, 0), (4, 1), (6, 3), (7, 4)]


def test_long_labels_are_shortened_in_the_middle() -> None:
    record = "ACGTTGCATG" + "C" * 80 + "TTGACCGATA"
    (page,) = pages_of([record], PLAIN)
    columns = decode_nodes(page.tree)
    longest = int(np.argmax(columns.edge_ends - columns.edge_starts))
    length = int(columns.edge_ends[longest] - columns.edge_starts[longest])
    label = edge_label(page, columns, longest).decode()
    first = record[int(columns.edge_starts[longest]) :][:10]
    assert label == f"{first}..{length - 20}..TTGACCGATA$"
    assert f'[label="{label}"]' in whole(dot_text([page]))


@pytest.mark.parametrize(("length", "shortened"), [(24, False), (25, True)])
def test_labels_are_written_whole_while_they_are_short(length: int, shortened: bool) -> None:
    bases = "ACGT" * 6 + "A"
    (page,) = pages_of(["G", bases[:length]], PLAIN)
    columns = decode_nodes(page.tree)
    columns.edge_starts[1], columns.edge_ends[1] = 2, 2 + length
    columns.is_leaf[1] = False
    label = edge_label(page, columns, 1).decode()
    assert label == ("ACGTACGTAC..5..TACGTACGTA" if shortened else bases[:length])


def test_positions_of_later_pages_are_their_own_but_bases_the_references() -> None:
    pages = pages_of(["ACGTTGCATGTCAGG"], PLAIN, 9)
    edges = graph_of(whole(dot_text(pages[1:])))[1]
    assert all(child.startswith("p1_") for child in edges)
    spelled = {value.split(" ")[1] for value in edges.values()}
    assert any(bases.endswith("CAGG$") for bases in spelled)


def test_only_small_references_can_be_drawn() -> None:
    check_dot_size(reference_of(["A" * MAX_DOT_BASES]))
    with pytest.raises(OptionError, match=r"^dot: .*10,001 bases .*at most 10,000") as caught:
        check_dot_size(reference_of(["A" * 5_000, "C" * 5_000]))
    assert caught.value.option == "dot"


def test_pages_without_a_base_have_a_root_and_no_more() -> None:
    pages = pages_of(["N" * 30, "ACGT"], PLAIN, 10)
    assert pages[0].tree.node_count == 1
    nodes, edges, links, chains = graph_of(whole(dot_text(pages[:1])))
    assert list(nodes) == ["p0_n0"]
    assert not edges and not links and not chains
    assert len(rows_of(whole(table_text(pages[:1])))) == 1
