"""A run and what it needs, as for the verbs."""

from tests.verbs.conftest import runs, tokenizer, trajectory_api

__all__ = ["runs", "tokenizer", "trajectory_api"]
