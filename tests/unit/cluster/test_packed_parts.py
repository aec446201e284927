"""Parts that are compressed apart are joined to the bytes of one stream."""

import random

import pytest

from mummergpu.cluster.joined_files import PartJoiner, block_text_bytes, pack_part
from mummergpu.output.bytes.compression import CompressedStream, compressor_of
from mummergpu.runtime.output_file import OutputFile
from mummergpu.runtime.stats import Stats


def compressed(text, name):
    compressor = compressor_of(name)
    if compressor is None:
        return text
    pieces = []
    stream = CompressedStream(compressor, 1, pieces.append)
    stream.add(text)
    stream.finish()
    stream.close()
    return b"".join(pieces)


@pytest.mark.parametrize("name", [None, "bgzf", "zstd"])
@pytest.mark.parametrize("has_folder", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_parts_make_the_same_file(tmp_path, name, has_folder, seed):
    made = random.Random(seed)
    compressor = compressor_of(name)
    block = block_text_bytes(compressor)
    # Parts of no byte, of less than a block, of whole ones, and of any size.
    sizes = [0, 1, block, made.randrange(100_000), made.randrange(100_000), 2 * block, 7]
    if name == "zstd":
        sizes.append(made.randrange(3 * block))
    made.shuffle(sizes)
    head, tail = made.randbytes(made.randrange(1000)), b"the end"
    texts = [bytes(made.choices(b"ACGT\n", k=size)) for size in sizes]
    folder = str(tmp_path) if has_folder else None
    with OutputFile(str(tmp_path / "out")) as file:
        joiner = PartJoiner(file, Stats())
        joiner.add(head)
        offset = joiner.waiting_bytes
        joiner.begin(compressor)
        for text in texts:
            joiner.add_part(pack_part(text, offset, compressor, folder))
            offset += len(text)
        joiner.add(tail)
        joiner.finish()
    whole = compressed(head + b"".join(texts) + tail, name)
    assert (tmp_path / "out").read_bytes() == whole
    assert [one.name for one in tmp_path.iterdir()] == ["out"]
