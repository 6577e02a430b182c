"""Write the letters of a string in the order of the alphabet: harder than to reverse it, by the same rules.

An environment may be made of another one: only what differs is here. See reverse.py for all the rest.
"""

from __future__ import annotations

from pydantic import Field
from reverse import ReverseConfig, ReverseEnv


class SortConfig(ReverseConfig):
    first_length: int = Field(3, ge=1, description="Letters of a string at the first level")
    first_letters: int = Field(8, ge=2, le=26, description="Size of the alphabet at the first level")


class SortEnv(ReverseEnv):
    name = "sort"
    env_config_cls = SortConfig

    @staticmethod
    def wanted(text: str) -> str:
        return "".join(sorted(text))


if __name__ == "__main__":
    SortEnv.cli()
