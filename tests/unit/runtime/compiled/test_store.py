"""Images on disk: what is damaged, missing, out of date or not safe is never returned."""

import os
import time
from pathlib import Path

import pytest
from helpers.loops import each
from helpers.tables import keywords, table

from mummergpu.runtime import cache_dir
from mummergpu.runtime.cache_dir import (
    cache_folder,
    can_be_written,
    folder_of_compiled_code,
    processor_code_places,
)
from mummergpu.runtime.compiled import store as code_store
from mummergpu.runtime.compiled.store import SUFFIX, CodeStore, generations, on_cache_trouble
from mummergpu.runtime.compiled.store_entry import ABANDONED_SECONDS, pack, unpack

KEY = bytes(range(32))
OTHER_KEY = bytes(32)
CONTENT = b"machine code, and what numba says about it"
GENERATION = "0123456789abcdef" * 2


class Stores:
    """Makes stores and keeps what they say."""

    def __init__(self):
        self.said = []

    def __call__(self, *places, names=(GENERATION,), most=1 << 20, packaged=()):
        return CodeStore(list(map(str, places)), names, self.said.append, packaged, most)


@pytest.fixture
def stores():
    return Stores()


def file_of(place, key=KEY, generation=GENERATION):
    return place / generation / (key.hex() + SUFFIX)


def test_what_was_kept_is_found_by_another_process(tmp_path, stores):
    place = tmp_path / "a" / "b"
    first = stores(place)
    assert first.load(KEY) is None
    first.save(KEY, CONTENT)
    assert first.load(KEY) == stores(place).load(KEY) == CONTENT
    assert first.load(OTHER_KEY) is None
    assert stores(place, names=["f" * 32]).load(KEY) is None
    assert stores.said == []
    assert [path.name for path in (place / GENERATION).iterdir()] == [KEY.hex() + SUFFIX]


def test_every_damage_is_seen():
    assert unpack(pack(b"", KEY), KEY) == b""
    sound = pack(CONTENT, KEY)
    assert unpack(sound, KEY) == CONTENT
    assert unpack(sound, OTHER_KEY) is None
    assert unpack(sound + b"x", KEY) is None
    for length in range(len(sound)):
        assert unpack(sound[:length], KEY) is None
    for bit in range(8 * len(sound)):
        damaged = bytearray(sound)
        damaged[bit // 8] ^= 1 << bit % 8
        assert unpack(bytes(damaged), KEY) is None


@pytest.mark.parametrize("damaged", [b"", b"mummergpu", pack(CONTENT, OTHER_KEY)])
def test_damage_is_told_once_and_mended(tmp_path, stores, damaged):
    store = stores(tmp_path)
    store.save(KEY, CONTENT)
    file_of(tmp_path).write_bytes(damaged)
    assert store.load(KEY) is None
    assert store.load(KEY) is None
    assert stores.said == [f"compiled code is damaged in {tmp_path}"]
    store.save(KEY, CONTENT)
    assert store.load(KEY) == CONTENT


def test_an_older_writer_that_ends_late_harms_nobody(tmp_path, stores):
    one, two = stores(tmp_path), stores(tmp_path)
    one.save(KEY, CONTENT)
    with open(file_of(tmp_path), "rb") as reader:
        two.save(KEY, CONTENT)
        assert unpack(reader.read(), KEY) == CONTENT


def test_the_next_place_is_taken_where_the_first_is_none(tmp_path, stores):
    no_folder, second = tmp_path / "file" / "x", tmp_path / "second"
    (tmp_path / "file").touch()
    stores(no_folder, second).save(KEY, CONTENT)
    assert file_of(second).exists()
    assert stores(no_folder, second).load(KEY) == CONTENT
    assert len(stores.said) == 2 and all(str(no_folder) in line for line in stores.said)


def test_without_a_place_nothing_is_kept(stores):
    store = stores()
    store.save(KEY, CONTENT)
    assert store.load(KEY) is None and store.folder() is None
    assert stores.said == []


def test_what_is_no_file_counts_as_not_there(tmp_path, stores):
    stores(tmp_path).save(KEY, CONTENT)
    path = file_of(tmp_path)
    path.unlink()
    path.mkdir()
    assert stores(tmp_path).load(KEY) is None
    path.rmdir()
    # Nobody ever writes into it, and opening it must not wait for that.
    os.mkfifo(path)
    assert stores(tmp_path).load(KEY) is None
    path.unlink()
    path.symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").write_bytes(pack(CONTENT, KEY))
    assert stores(tmp_path).load(KEY) is None
    assert len(stores.said) == 3


@pytest.mark.parametrize("mode", [0o777, 0o775, 0o757])
def test_a_folder_that_others_can_write_to_is_not_used(tmp_path, stores, mode):
    stores(tmp_path).save(KEY, CONTENT)
    (tmp_path / GENERATION).chmod(mode)
    store = stores(tmp_path)
    assert store.load(KEY) is None and store.folder() is None
    store.save(OTHER_KEY, CONTENT)
    assert not file_of(tmp_path, OTHER_KEY).exists()
    told = f"compiled code cannot be read from {tmp_path}: other users can write to it"
    assert stores.said == [told]


def test_a_folder_of_another_user_is_not_used(tmp_path, stores, monkeypatch):
    stores(tmp_path).save(KEY, CONTENT)
    found = os.fstat

    def of_a_stranger(descriptor):
        fields = list(found(descriptor))
        fields[4] = os.geteuid() + 1
        return os.stat_result(fields)

    monkeypatch.setattr(os, "fstat", of_a_stranger)
    assert stores(tmp_path).load(KEY) is None
    told = f"compiled code cannot be read from {tmp_path}: it belongs to another user"
    assert stores.said == [told]


def test_a_link_in_place_of_the_folder_is_not_followed(tmp_path, stores):
    stores(tmp_path / "a").save(KEY, CONTENT)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / GENERATION).symlink_to(tmp_path / "a" / GENERATION)
    assert stores(tmp_path / "b").load(KEY) is None
    assert len(stores.said) == 1


def test_others_may_read_and_not_write(tmp_path, stores):
    before = os.umask(0)
    try:
        stores(tmp_path / "place").save(KEY, CONTENT)
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "place").rglob("*")}
    assert modes == {GENERATION: 0o755, KEY.hex() + SUFFIX: 0o644}


def make_image(place, stores, name, age, key=KEY):
    stores(place, names=[name]).save(key, bytes(10_000))
    used = time.time() - age
    os.utime(file_of(place, key, name), (used, used))
    return file_of(place, key, name)


def test_images_that_nobody_uses_are_removed(tmp_path, stores):
    images = ("a" * 32, 2e4), ("a" * 32, 3e4, OTHER_KEY), ("c" * 32, 100)
    old, older, recent = (make_image(tmp_path, stores, *image) for image in images)
    (tmp_path / "notes").mkdir()
    # The least recently used go until what is left is small enough.
    stores(tmp_path, most=31_000).save(KEY, bytes(10_000))
    assert old.exists() and not older.exists()
    # A process may use the recent one.
    stores(tmp_path, names=["d" * 32, GENERATION], most=0).save(KEY, b"")
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"d" * 32, GENERATION, recent.parent.name, "notes"} and recent.exists()


def test_the_last_use_is_marked(tmp_path, stores):
    image = make_image(tmp_path, stores, GENERATION, 1e6)
    assert stores(tmp_path).load(KEY) is not None
    assert time.time() - image.stat().st_mtime < 1000


def test_abandoned_files_are_removed(tmp_path, stores):
    generation = make_image(tmp_path, stores, GENERATION, 0).parent
    for name, age in (("old.unfinished", ABANDONED_SECONDS + 100), ("new.unfinished", 0)):
        (generation / name).touch()
        os.utime(generation / name, (time.time() - age,) * 2)
    stores(tmp_path).save(OTHER_KEY, CONTENT)
    left = {path.name for path in generation.iterdir()}
    assert "new.unfinished" in left and "old.unfinished" not in left


def test_images_of_a_package_and_of_lower_levels_are_found(tmp_path, stores):
    own, package = tmp_path / "own", tmp_path / "package"
    lower = "1" * 32
    stores(package, names=[lower]).save(KEY, CONTENT)
    # A package may belong to anybody who can write to this one.
    (package / lower).chmod(0o777)
    store = stores(own, names=[GENERATION, lower], packaged=[str(package)])
    assert store.load(KEY) == CONTENT and not own.exists()
    store.save(KEY, b"of this level")
    assert store.load(KEY) == b"of this level"
    assert not (package / GENERATION).exists() and stores.said == []


def test_the_first_trouble_waits_for_a_listener(monkeypatch):
    monkeypatch.setattr(code_store, "_listeners", [])
    code_store._report("one")
    lines = []
    on_cache_trouble(lines.append)
    code_store._report("two")
    assert lines == ["one", "two"]


def test_a_generation_depends_on_sources_levels_and_settings(monkeypatch):
    names = []
    for sources in ("a", "b"):
        monkeypatch.setattr(code_store, "_COMPILATION", sources)
        for levels in (("x86-64-v3", "x86-64-v2"), ()):
            monkeypatch.setattr(code_store, "usable_levels", lambda levels=levels: levels)
            names += generations()
    monkeypatch.setenv("NUMBA_OPT", "1")
    names += generations()
    assert len(set(names)) == len(names) == 7
    monkeypatch.setattr(code_store, "_COMPILATION", None)
    assert generations() == ()


@each("environment, expected", table(__file__, None, keywords))
def test_caches_lie_where_the_environment_says(environment, expected):
    assert str(cache_folder(environment)) == expected


def test_a_relative_folder_means_the_same_after_a_change_of_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cache_folder({"MUMMERGPU_CACHE_DIR": "kept"}) == tmp_path / "kept"


def test_the_temporary_directory_stands_in_for_the_home():
    temporary = f"/v/mummergpu-{os.geteuid()}/processor"
    places = processor_code_places({"HOME": "/h", "TMPDIR": "/v"})
    assert places == ("/h/.cache/mummergpu/processor", temporary)
    assert processor_code_places({"HOME": "nowhere", "TMPDIR": "/v"}) == (temporary,)
    assert processor_code_places({"HOME": "/h"})[1].startswith("/tmp/mummergpu-")


def test_a_chosen_folder_stands_alone():
    environment = {"MUMMERGPU_CACHE_DIR": "/a", "HOME": "/h", "TMPDIR": "/v"}
    assert processor_code_places(environment) == ("/a/processor",)
    assert folder_of_compiled_code(environment) == cache_folder(environment) / "processor"


def test_a_folder_can_be_written_if_it_can_be_made(tmp_path):
    assert can_be_written(str(tmp_path / "a" / "b"))
    (tmp_path / "file").touch()
    assert not can_be_written(str(tmp_path / "file" / "x"))


def test_the_first_place_that_can_be_written_is_named(monkeypatch):
    environment = {"HOME": "/h", "TMPDIR": "/v"}
    usual = "/h/.cache/mummergpu/processor"
    temporary = f"/v/mummergpu-{os.geteuid()}/processor"
    for writable, expected in [({usual, temporary}, usual), ({temporary}, temporary)]:
        monkeypatch.setattr(cache_dir, "can_be_written", writable.__contains__)
        assert folder_of_compiled_code(environment) == Path(expected)
    monkeypatch.setattr(cache_dir, "can_be_written", lambda _: False)
    assert folder_of_compiled_code(environment) == Path(usual)
