"""An open file that whoever still reads it holds open, also when another one has taken its place."""

from __future__ import annotations

import os
import threading


class HeldFile:
    """A descriptor that is closed by `close`, or in a thread when nobody holds the object any more.

    For then the file has been replaced, and to give back the blocks of a large one takes the system a while.
    """

    __slots__ = ("descriptor",)

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    @property
    def is_closed(self) -> bool:
        return self.descriptor < 0

    def close(self) -> None:
        """At once. May be called again; reading raises OSError from then on."""
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __del__(self) -> None:
        if self.is_closed:
            return
        try:
            threading.Thread(target=os.close, args=(self.descriptor,), name="journal-closing", daemon=True).start()
        except RuntimeError:
            # The interpreter ends, and takes everything with it.
            os.close(self.descriptor)
