"""An environment that imports from the package that its folder is, and by its own name."""

from atroposlib.envs.base import BaseEnv
from team.scoring import score

from .scoring import WORDS


class WordsEnv(BaseEnv):
    words = WORDS

    async def get_next_item(self):
        return self.words[0], score(self.words[0])

    async def evaluate(self, *args, **kwargs):
        return None
