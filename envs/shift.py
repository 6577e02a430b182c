"""Write each letter's successor in the alphabet, an "a" for a "z": slow to learn, for every letter must be learned.

An environment may be made of another one: only what differs is here. See reverse.py for all the rest.
"""

from __future__ import annotations

from string import ascii_lowercase

from pydantic import Field
from reverse import ReverseConfig, ReverseEnv

SUCCESSOR = str.maketrans(ascii_lowercase, ascii_lowercase[1:] + ascii_lowercase[0])


class ShiftConfig(ReverseConfig):
    first_length: int = Field(3, ge=1, description="Letters of a string at the first level")
    first_letters: int = Field(8, ge=2, le=26, description="Size of the alphabet at the first level")


class ShiftEnv(ReverseEnv):
    name = "shift"
    env_config_cls = ShiftConfig

    @staticmethod
    def wanted(text: str) -> str:
        return text.translate(SUCCESSOR)


if __name__ == "__main__":
    ShiftEnv.cli()
