"""Device memory for one block at a time: named rooms that grow and are used again."""

from __future__ import annotations

from typing import Final

from mummergpu.cuda.device import Buffer, Device, DeviceMemoryError

SMALLEST_ROOM: Final = 512
SLACK: Final = 8
"""A room is made an eighth larger than asked for, so that it is seldom made anew."""


class Workspace:
    """Rooms of linear memory on a device.

    Parameters
    ----------
    device : Device
        Where the memory is.
    limit : int
        The most bytes of all rooms together.
    """

    def __init__(self, device: Device, limit: int) -> None:
        self._device = device
        self._limit = limit
        self._rooms: dict[str, Buffer] = {}

    @property
    def size(self) -> int:
        """The bytes of all rooms together."""
        return sum(room.size for room in self._rooms.values())

    def room(self, name: str, size: int) -> int:
        """Return the address of a room of at least `size` bytes.

        What was in it is lost if it has to grow.

        Parameters
        ----------
        name : str
            Which room.
        size : int
            In bytes; 0 is a room too.

        Returns
        -------
        int
            Its address, a multiple of 256.

        Raises
        ------
        DeviceMemoryError
            If that is over the limit, or more than the device has.
        """
        room = self._rooms.get(name)
        if room is not None and room.size >= size:
            return room.address
        if room is not None:
            del self._rooms[name]
            room.free()
        left = self._limit - self.size
        if size > left:
            raise DeviceMemoryError(f"{size} bytes for {name}, and {left} are left")
        self._rooms[name] = self._device.allocate(
            max(min(size + size // SLACK, left), min(SMALLEST_ROOM, left), 1)
        )
        return self._rooms[name].address

    def free(self) -> None:
        """Give all memory back; rooms can be asked for again."""
        while self._rooms:
            self._rooms.popitem()[1].free()
