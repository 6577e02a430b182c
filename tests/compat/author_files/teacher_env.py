"""A teacher added to an environment whose `__init__` knows of none."""

from atroposlib.envs.server_handling.server_baseline import APIServerConfig
from atroposlib.envs.teacher_distillation_env import TeacherDistillationConfig, TeacherDistillationEnv
from bare_config_env import BareConfigEnv


class TaughtEnv(BareConfigEnv, TeacherDistillationEnv):
    name = "taught"
    env_config_cls = TeacherDistillationConfig

    @classmethod
    def config_init(cls):
        _, servers = BareConfigEnv.config_init()
        return TeacherDistillationConfig(group_size=2, use_wandb=False, teacher_enabled=True, teacher_top_k=2), servers

    @classmethod
    def teacher_config_init(cls):
        return APIServerConfig(base_url="http://localhost:9124/v1", model_name="teacher", server_type="vllm")


if __name__ == "__main__":
    TaughtEnv.cli()
