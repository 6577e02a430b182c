"""Weights of the policy on their way from the trainer to the inference server, as an npz file or its bytes."""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path

import numpy as np

from atropos_tui.errors import AtroposError
from atropos_tui.pocket.policy import Parameters


def weights_to_bytes(parameters: Parameters) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **parameters)
    return buffer.getvalue()


def write_weights(parameters: Parameters, path: Path) -> None:
    """Replace the file in one step, so that a reader never finds half of it."""
    unfinished = path.with_name(f"{path.name}.{os.getpid()}")
    unfinished.write_bytes(weights_to_bytes(parameters))
    unfinished.replace(path)


def read_weights(source: Path | bytes, like: Parameters) -> Parameters:
    """The parameters in a file or its bytes. Raises AtroposError unless they have the names and shapes of `like`."""
    try:
        with np.load(io.BytesIO(source) if isinstance(source, bytes) else source, allow_pickle=False) as archive:
            parameters = {name: archive[name] for name in archive.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, AttributeError) as error:
        place = "the body" if isinstance(source, bytes) else str(source)
        raise AtroposError(f"{place} is no npz file of weights ({error})", "send what `numpy.savez` writes") from error
    for name, expected in like.items():
        if name not in parameters:
            raise AtroposError(f"the weights lack {name}")
        if parameters[name].shape != expected.shape or not np.isfinite(parameters[name]).all():
            raise AtroposError(f"{name} is not {expected.shape} finite numbers")
    return {name: parameters[name].astype(expected.dtype) for name, expected in like.items()}
