"""One thread of linear algebra a process."""

from __future__ import annotations

import os


def use_one_blas_thread() -> None:
    """To be called before numpy is first imported.

    The policy's matrices are so small that threads only wait for one another, and the four processes of a loop share
    two cores.
    """
    for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"):
        os.environ.setdefault(variable, "1")
