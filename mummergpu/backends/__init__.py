"""What finds the matches: the ``cpu`` backend, and ``cuda`` where a device answers."""
