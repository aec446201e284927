"""The played driver of `kernels/played_driver.cpp`, as tests see it in a process that has it."""

import ctypes

KINDS = ("memory", "pinned", "streams", "events", "modules", "textures", "arrays")
DEVICES = (0, 1)
OTHERS = 5
"""The context of somebody else."""


class PlayedDriver:
    """What the driver was asked, and what has not been given back; lets any function fail."""

    def __init__(self, path="libcuda.so.1"):
        self._library = ctypes.CDLL(path)
        self._library.play_log.restype = ctypes.c_char_p
        self._log = []
        self._library.play_anew()

    @property
    def log(self):
        """All calls so far, with what was given."""
        self._log += self._library.play_log().decode().splitlines()
        return self._log

    @property
    def calls(self):
        """The functions that were called so far."""
        return [line.split(" ")[0] for line in self.log]

    @property
    def contexts(self):
        """The devices whose contexts are current in this thread, the last one on top."""
        return [self._library.play_context(at) for at in range(self._library.play_contexts())]

    @property
    def owned(self):
        """What has not been given back; contexts by their devices."""
        counts = {kind: self._library.play_owned(kind.encode()) for kind in KINDS}
        counts |= {f"context {one}": self._library.play_retained(one) for one in DEVICES}
        return {kind: count for kind, count in counts.items() if count}

    def fail(self, error, *names):
        """Let functions return an error, such as ``OUT_OF_MEMORY``; or work again: ``SUCCESS``."""
        from cuda.bindings import driver

        prefix = "CUDA_" if error == "SUCCESS" else "CUDA_ERROR_"
        code = int(getattr(driver.CUresult, prefix + error))
        for name in names:
            self._library.play_failure(name.encode(), code)

    def work_for(self, milliseconds):
        """Let the work of a stream take so long before it is done."""
        self._library.play_milliseconds(milliseconds)

    def make_others_current(self):
        """Let a context of somebody else be current."""
        from cuda.bindings import driver

        driver.cuCtxPushCurrent(driver.CUcontext(70 + OTHERS))

    def forget(self):
        """Leave nothing of a test."""
        self._library.play_anew()
