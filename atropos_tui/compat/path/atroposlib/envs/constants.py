"""`atroposlib.envs.constants`: prefixes of the command line's flags, as in `--env.group_size`."""

ENV_NAMESPACE = "env"
OPENAI_NAMESPACE = "openai"
SERVER_MANAGER_NAMESPACE = "server"
NAMESPACE_SEP = "."
