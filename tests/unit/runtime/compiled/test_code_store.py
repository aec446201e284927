"""Code on disk: what is damaged, missing or not safe is never returned."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mummergpu.runtime.compiled import code_store
from mummergpu.runtime.compiled.code_store import SUFFIX, CodeStore
from mummergpu.runtime.compiled.kept_content import ABANDONED_SECONDS, pack, unpack

KEY = bytes(range(32))
OTHER_KEY = bytes(32)
CONTENT = b"machine code, and what numba says about it"
GENERATION = "0123456789abcdef" * 2


class Stores:
    """Makes stores and keeps what they say."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.made: list[CodeStore] = []

    def __call__(self, *places: Path, generation: str = GENERATION, most: int = 1 << 20) -> Any:
        self.made.append(CodeStore(list(map(str, places)), generation, self.said.append, most))
        return self.made[-1]


@pytest.fixture
def stores() -> Iterator[Stores]:
    made = Stores()
    yield made
    for store in made.made:
        store.close()


def file_of(place: Path, key: bytes = KEY, generation: str = GENERATION) -> Path:
    return place / generation / (key.hex() + SUFFIX)


def test_what_was_kept_is_found_by_another_process(tmp_path: Path, stores: Stores) -> None:
    place = tmp_path / "a" / "b"
    first = stores(place)
    assert first.load(KEY) is None
    first.save(KEY, CONTENT)
    assert first.load(KEY) == stores(place).load(KEY) == CONTENT
    assert first.load(OTHER_KEY) is None
    assert stores(place, generation="f" * 32).load(KEY) is None
    assert stores.said == []
    assert {path.name for path in (place / GENERATION).iterdir()} == {"lock", KEY.hex() + SUFFIX}


def test_every_damage_is_seen() -> None:
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
def test_damage_is_told_once_and_mended(tmp_path: Path, stores: Stores, damaged: bytes) -> None:
    store = stores(tmp_path)
    store.save(KEY, CONTENT)
    file_of(tmp_path).write_bytes(damaged)
    assert store.load(KEY) is None
    assert store.load(KEY) is None
    assert stores.said == [f"compiled code is damaged in {tmp_path}"]
    store.save(KEY, CONTENT)
    assert store.load(KEY) == CONTENT


def test_an_older_writer_that_ends_late_harms_nobody(tmp_path: Path, stores: Stores) -> None:
    one, two = stores(tmp_path), stores(tmp_path)
    one.save(KEY, CONTENT)
    with open(file_of(tmp_path), "rb") as reader:
        two.save(KEY, CONTENT)
        assert unpack(reader.read(), KEY) == CONTENT


@pytest.mark.parametrize("call", ["makedirs", "mkdir", "open", "replace"])
def test_a_disk_that_is_full_keeps_nothing_and_stops_nothing(
    tmp_path: Path, stores: Stores, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    store = stores(tmp_path / "full")

    def fail(*_arguments: Any, **_options: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as full:
        full.setattr(os, call, fail)
        store.save(KEY, CONTENT)
        store.save(OTHER_KEY, CONTENT)
    told = f"compiled code cannot be kept in {tmp_path / 'full'}: No space left on device"
    assert stores.said == [told]
    assert [path for path in tmp_path.rglob("*") if path.suffix] == []
    assert store.load(KEY) is None


def test_a_write_that_fails_leaves_nothing_behind(
    tmp_path: Path, stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full:
        def __init__(self, descriptor: int, mode: str) -> None:
            self.file = open(descriptor, mode)

        def __enter__(self) -> Full:
            return self

        def __exit__(self, *_: Any) -> None:
            self.file.close()

        def write(self, _content: bytes) -> None:
            raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    monkeypatch.setattr(code_store, "open", Full, raising=False)
    stores(tmp_path).save(KEY, CONTENT)
    assert [path.name for path in (tmp_path / GENERATION).iterdir()] == ["lock"]
    assert len(stores.said) == 1


def test_the_next_place_is_taken_where_the_first_is_none(tmp_path: Path, stores: Stores) -> None:
    no_folder, second = tmp_path / "file" / "x", tmp_path / "second"
    (tmp_path / "file").touch()
    stores(no_folder, second).save(KEY, CONTENT)
    assert file_of(second).exists()
    assert stores(no_folder, second).load(KEY) == CONTENT
    assert len(stores.said) == 2 and all(str(no_folder) in line for line in stores.said)


def test_without_a_place_nothing_is_kept(stores: Stores) -> None:
    store = stores()
    store.save(KEY, CONTENT)
    assert store.load(KEY) is None and store.folder() is None
    assert stores.said == []


def test_what_is_no_file_counts_as_not_there(tmp_path: Path, stores: Stores) -> None:
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
def test_a_folder_that_others_can_write_to_is_not_used(
    tmp_path: Path, stores: Stores, mode: int
) -> None:
    stores(tmp_path).save(KEY, CONTENT)
    (tmp_path / GENERATION).chmod(mode)
    store = stores(tmp_path)
    assert store.load(KEY) is None and store.folder() is None
    store.save(OTHER_KEY, CONTENT)
    assert not file_of(tmp_path, OTHER_KEY).exists()
    told = f"compiled code cannot be read from {tmp_path}: other users can write to it"
    assert stores.said == [told]


def test_a_folder_of_another_user_is_not_used(
    tmp_path: Path, stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    stores(tmp_path).save(KEY, CONTENT)
    found = os.fstat

    def of_a_stranger(descriptor: int) -> Any:
        fields = list(found(descriptor))
        fields[4] = os.geteuid() + 1
        return os.stat_result(fields)

    monkeypatch.setattr(os, "fstat", of_a_stranger)
    assert stores(tmp_path).load(KEY) is None
    assert stores.said == [
        f"compiled code cannot be read from {tmp_path}: it belongs to another user"
    ]


def test_a_link_in_place_of_the_folder_is_not_followed(tmp_path: Path, stores: Stores) -> None:
    stores(tmp_path / "a").save(KEY, CONTENT)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / GENERATION).symlink_to(tmp_path / "a" / GENERATION)
    assert stores(tmp_path / "b").load(KEY) is None
    assert len(stores.said) == 1


def test_others_may_read_and_not_write(tmp_path: Path, stores: Stores) -> None:
    before = os.umask(0)
    try:
        stores(tmp_path / "place").save(KEY, CONTENT)
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "place").rglob("*")}
    assert modes == {GENERATION: 0o755, "lock": 0o644, KEY.hex() + SUFFIX: 0o644}


def make_generation(place: Path, stores: Stores, name: str, age: float) -> Path:
    stores(place, generation=name).save(KEY, bytes(10_000))
    stores.made.pop().close()
    used = time.time() - age
    os.utime(place / name / "lock", (used, used))
    return place / name


def test_generations_that_nobody_uses_are_removed(tmp_path: Path, stores: Stores) -> None:
    old, held, recent = (
        make_generation(tmp_path, stores, letter * 32, age)
        for letter, age in (("a", 1000), ("b", 900), ("c", 800))
    )
    (tmp_path / "notes").mkdir()
    assert stores(tmp_path, generation=held.name).load(KEY) == bytes(10_000)
    # All but the last that are free go until what is left is small enough.
    stores(tmp_path, most=31_000).save(KEY, bytes(10_000))
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        [GENERATION, held.name, recent.name, "notes"]
    )
    stores(tmp_path, most=0).save(OTHER_KEY, bytes(10_000))
    assert sorted(path.name for path in tmp_path.iterdir()) == [GENERATION, held.name, "notes"]
    assert not old.exists()
    # The process that held it is gone.
    stores.made[-2].close(), stores.made[-3].close()
    for store in stores.made:
        store.close()
    stores(tmp_path, generation="d" * 32, most=0).save(KEY, b"")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d" * 32, "notes"]


def test_the_last_use_is_noted(tmp_path: Path, stores: Stores) -> None:
    generation = make_generation(tmp_path, stores, GENERATION, 1e6)
    assert stores(tmp_path).load(KEY) is not None
    assert time.time() - (generation / "lock").stat().st_mtime < 1000


def test_abandoned_files_are_removed(tmp_path: Path, stores: Stores) -> None:
    generation = make_generation(tmp_path, stores, GENERATION, 0)
    for name, age in (("old.unfinished", ABANDONED_SECONDS + 100), ("new.unfinished", 0)):
        (generation / name).touch()
        os.utime(generation / name, (time.time() - age,) * 2)
    stores(tmp_path).save(OTHER_KEY, CONTENT)
    left = {path.name for path in generation.iterdir()}
    assert "new.unfinished" in left and "old.unfinished" not in left


def test_a_folder_that_cannot_be_locked_serves_all_the_same(
    tmp_path: Path, stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_arguments: Any) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(code_store.fcntl, "flock", refuse)
    stores(tmp_path, most=0).save(KEY, CONTENT)
    assert stores(tmp_path).load(KEY) == CONTENT
    # Nobody can tell whether it is in use.
    stores(tmp_path, generation="f" * 32, most=0).save(KEY, CONTENT)
    assert file_of(tmp_path).exists() and stores.said == []
