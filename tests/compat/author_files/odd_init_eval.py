"""An evaluation with names of its own: a third parameter `slurm_job_id`, and `config_cls` instead of `config_init`."""

import asyncio
import json
from pathlib import Path

from atroposlib.envs.base import BaseEnv, BaseEnvConfig


class WordsConfig(BaseEnvConfig):
    words_file: str = "words.json"
    use_wandb: bool = False


class OddInitEval(BaseEnv):
    name = "words"

    def __init__(self, config, server_configs, slurm_job_id=None, testing=False):
        super().__init__(config, server_configs, slurm_job_id, testing)
        self.words = []

    @classmethod
    def config_cls(cls):
        return WordsConfig

    async def setup(self):
        await super().setup()
        self.words = json.loads(await asyncio.to_thread(Path(self.config.words_file).read_text))

    async def get_next_item(self):
        return None

    async def evaluate(self, *args, **kwargs):
        answers = [await self.server.chat_completion(messages=[{"role": "user", "content": w}]) for w in self.words]
        answered = [answer.choices[0].message.content is not None for answer in answers]
        await self.evaluate_log(
            metrics={"eval/answered": sum(answered) / len(answered)}, samples=[{"n": len(answered)}]
        )


if __name__ == "__main__":
    OddInitEval.cli()
