"""Read the values of a TOML table, and check each of them."""

from __future__ import annotations

from typing import Any

from mummergpu.errors import InputError

Profile = tuple[tuple[float, float], ...]
"""Points (fraction of the read, value) of a curve; straight lines join them."""


class CheckedTable:
    """A TOML table that checks each value when the value is taken out.

    Each method that returns a value takes it out of the table. It raises InputError, with the file
    and the full name of the key, if the key is missing or its value is not valid. `prefix` is the
    names of the tables that contain this one, each followed by a dot.
    """

    def __init__(self, content: dict[str, Any], path: str, prefix: str) -> None:
        self._left = dict(content)
        self._path = path
        self._prefix = prefix

    def error(self, key: str, message: str) -> InputError:
        """Return the error that says what is wrong with a key."""
        return InputError(f"{self._prefix}{key} {message}", self._path)

    def _take(self, key: str) -> Any:
        if key not in self._left:
            raise self.error(key, "is missing")
        return self._left.pop(key)

    def finish(self) -> None:
        """Raise InputError if a key is left in the table."""
        for key in self._left:
            raise self.error(key, "is not a known key")

    def has(self, key: str) -> bool:
        """Return whether a key is left in the table."""
        return key in self._left

    def text(self, key: str) -> str:
        """Return a line of text."""
        value = self._take(key)
        if not isinstance(value, str) or not value.isprintable() or not value:
            raise self.error(key, "must be a line of text")
        return value

    def integer(self, key: str, low: int, high: int = 2**32 - 1) -> int:
        """Return a whole number from `low` to `high`."""
        return int(self._number(key, self._take(key), low, high, whole=True))

    def number(self, key: str, low: float, high: float) -> float:
        """Return a number from `low` to `high`."""
        return self._number(key, self._take(key), low, high)

    def truth(self, key: str) -> bool:
        """Return a truth value."""
        value = self._take(key)
        if not isinstance(value, bool):
            raise self.error(key, f"must be true or false, not {value!r}")
        return value

    def integers(self, key: str, low: int, high: int = 2**32 - 1) -> tuple[int, int]:
        """Return the two ends of a range of whole numbers."""
        first, last = self._range(key, low, high, whole=True)
        return int(first), int(last)

    def numbers(self, key: str, low: float, high: float) -> tuple[float, float]:
        """Return the two ends of a range of numbers."""
        return self._range(key, low, high)

    def values(self, key: str, low: float, high: float) -> tuple[float, ...]:
        """Return a list of numbers."""
        values = self._list(key, self._take(key))
        return tuple(self._number(key, value, low, high) for value in values)

    def profile(self, key: str, low: float, high: float, *, may_be_empty: bool = False) -> Profile:
        """Return the points of a curve along the read, from its first base (0) to its last (1)."""
        points = []
        for value in self._list(key, self._take(key)):
            place, height = self._list(key, value, 2)
            points.append((self._number(key, place, 0, 1), self._number(key, height, low, high)))
        if not points and may_be_empty:
            return ()
        places = [place for place, _ in points]
        if not places or places[0] != 0 or places[-1] != 1 or places != sorted(set(places)):
            raise self.error(key, "must have points that ascend from 0 to 1")
        return tuple(points)

    def table(self, key: str) -> CheckedTable:
        """Return a table within this one."""
        return self._table(key, self._take(key), key)

    def tables(self, key: str) -> list[CheckedTable]:
        """Return a list of tables, empty if there is none."""
        values = self._list(key, self._left.pop(key, []))
        return [self._table(key, value, f"{key}[{n}]") for n, value in enumerate(values)]

    def _table(self, key: str, value: Any, name: str) -> CheckedTable:
        if not isinstance(value, dict):
            raise self.error(key, "must be a table")
        return CheckedTable(value, self._path, f"{self._prefix}{name}.")

    def _list(self, key: str, value: Any, length: int | None = None) -> list[Any]:
        if not isinstance(value, list) or length not in (None, len(value)):
            raise self.error(key, "must be a list" + (f" of {length}" if length else ""))
        return value

    def _range(
        self, key: str, low: float, high: float, *, whole: bool = False
    ) -> tuple[float, float]:
        ends = self._list(key, self._take(key), 2)
        first, last = (self._number(key, end, low, high, whole=whole) for end in ends)
        if first > last:
            raise self.error(key, "must not begin above its end")
        return first, last

    def _number(
        self, key: str, value: Any, low: float, high: float, *, whole: bool = False
    ) -> float:
        kinds = int if whole else (int, float)
        if isinstance(value, bool) or not isinstance(value, kinds) or not low <= value <= high:
            kind = "a whole number" if whole else "a number"
            raise self.error(key, f"must be {kind} from {low} to {high}, not {value!r}")
        return value
