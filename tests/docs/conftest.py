"""A trajectory API with a trainer that takes nothing, as for the verbs."""

from tests.verbs.conftest import trajectory_api

__all__ = ["trajectory_api"]
