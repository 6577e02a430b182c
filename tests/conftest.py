"""What holds for all tests: nothing of theirs goes where the developer keeps runs, and none depends on how busy the
machine is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")


@pytest.fixture(scope="session", autouse=True)
def _runs_of_their_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATROPOS_TUI_RUNS", str(tmp_path_factory.mktemp("runs")))
        yield
