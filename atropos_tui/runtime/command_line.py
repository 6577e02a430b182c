"""The command line of an environment: flags and a YAML file on top of what its `config_init` says.

Precedence: flags, then the file, then `config_init`, then the defaults of the classes. Flags are those of atroposlib:
`--env.FIELD VALUE`, `--openai.FIELD VALUE`, `--slurm`, `--testing`, `--config FILE`.
"""

from __future__ import annotations

import difflib
import inspect
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError, create_model
from pydantic_core import to_jsonable_python
from pydantic_settings import BaseSettings, CliSettingsSource, SettingsError

from atropos_tui.errors import UsageError
from atropos_tui.inference import APIServerConfig, ServerBaseline, ServerManagerConfig
from atropos_tui.runtime.config import BaseEnvConfig
from atropos_tui.runtime.masking import is_secret, without_credentials
from atropos_tui.runtime.setting_rows import field_sources, server_sections

if TYPE_CHECKING:
    from atropos_tui.runtime.base_env import BaseEnv

logger = logging.getLogger(__name__)

M = TypeVar("M", bound=BaseModel)

SERVER_MANAGER_FLAGS = tuple(ServerManagerConfig.model_fields)
_FLAG = re.compile(r"--[A-Za-z_][\w.-]*(=.*)?", re.DOTALL)

SWITCHES = ("slurm", "testing")
FILE_KEYS = ("env", "openai", "teacher", *SERVER_MANAGER_FLAGS)


@dataclass(frozen=True, slots=True)
class RunSettings:
    """The merged configuration of one run.

    `sources` tells for `env.FIELD`, `openai.FIELD` (`openai[0].FIELD` of several servers) and `slurm` … where the
    value is from: `flag`, `file`, `mode`, `config_init` or `default`. `file` is the path that `--config` gave.
    """

    env: BaseEnvConfig
    servers: list[APIServerConfig] | ServerBaseline
    manager: ServerManagerConfig
    sources: Mapping[str, str]
    teacher: list[APIServerConfig] | ServerBaseline | None = None
    file: str = ""

    def as_yaml(self) -> str:
        """A file that `--config` reads back. Keys and passwords are left out."""
        servers: Any = {}
        if isinstance(self.servers, list):
            servers = [server.model_dump(mode="json", exclude={"api_key"}) for server in self.servers]
        secrets = {name for name in type(self.env).model_fields if is_secret(name)}
        # Fields of an environment may be of any type.
        env = to_jsonable_python(self.env, exclude=secrets, serialize_unknown=True)
        merged = {"env": env, "openai": servers, **self.manager.model_dump(mode="json")}
        return without_credentials(yaml.safe_dump(merged, sort_keys=False))

    def build(self, environment: type[BaseEnv]) -> BaseEnv:
        """An instance of the environment. Raises UsageError when it cannot be made."""
        missing = sorted(environment.__abstractmethods__)
        if missing:
            raise UsageError(f"{environment.__name__} lacks {' and '.join(missing)}", "define them in the class")
        if self.teacher:
            # Not an argument: an `__init__` that knows of no teacher may stand between.
            environment.teacher_server_configs = self.teacher  # type: ignore[attr-defined]
        parameters = inspect.signature(environment).parameters
        takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
        if takes_any or {"slurm", "testing"} <= set(parameters):
            env = environment(self.env, self.servers, slurm=self.manager.slurm, testing=self.manager.testing)
        else:
            # Environments call the third and the fourth parameter as they like, and may leave them out.
            switches = (self.manager.slurm, self.manager.testing)[: max(0, len(parameters) - 2)]
            env = environment(self.env, self.servers, *switches)
        env.server.max_n_completions = self.manager.max_n_completions
        return env


def parse_settings(
    environment: type[BaseEnv], arguments: Sequence[str], mode_defaults: Mapping[str, Any] | None = None
) -> RunSettings:
    """Merge flags, file and defaults. `mode_defaults` stand in for defaults of the environment's own config.

    Raises UsageError that names the flag or the key of the file.
    """
    default_env, default_servers = environment.config_init()
    teacher = _default_teacher(environment)
    templates = {"openai": _server_template(default_servers)}
    if teacher is not None:
        templates["teacher"] = _server_template(teacher)
    flags = _read_flags(default_env, templates, arguments)
    file = _read_file(flags.get("config"))
    defaults = default_env.model_dump() | dict(mode_defaults or {})
    layers = {"mode": mode_defaults or {}, "file": _section(file, "env"), "flag": flags.get("env") or {}}
    env = _merged(_merged(defaults, layers["file"]), layers["flag"])
    manager = {name: file[name] for name in SERVER_MANAGER_FLAGS if name in file}
    manager |= {name: flags[name] for name in SERVER_MANAGER_FLAGS if name in flags}
    sources = field_sources("env.", default_env, layers)
    sources |= field_sources("", ServerManagerConfig(), {"file": file, "flag": flags})
    chosen = {}
    for section, default in (("openai", default_servers), ("teacher", teacher)):
        if default is not None:
            given = file.get(section), flags.get(section) or {}
            chosen[section] = _servers(default, *given)
            sources |= _server_sources(section, chosen[section], default, *given)
    return RunSettings(
        env=_validated(type(default_env), env, "env"),
        servers=chosen["openai"],
        manager=_validated(ServerManagerConfig, manager, ""),
        sources=sources,
        teacher=chosen.get("teacher"),
        file=flags.get("config") or "",
    )


def help_text(environment: type[BaseEnv]) -> str:
    """The flags of an environment with their defaults."""
    default_env, default_servers = environment.config_init()
    lines = [f"{environment.__name__}: flags, each with its default", ""]
    for section, config in (("env", default_env), ("openai", _server_template(default_servers))):
        for name, field in type(config).model_fields.items():
            default = getattr(config, name, None)
            shown = default.value if isinstance(default, Enum) else default
            lines.append(f"  --{section}.{name} {shown!r}  {field.description or ''}".rstrip())
        lines.append("")
    for name, field in ServerManagerConfig.model_fields.items():
        lines.append(f"  --{name} {field.default!r}  {field.description or ''}".rstrip())
    lines.append("  --config FILE  YAML with the keys env, openai, slurm, testing; flags come before it")
    return "\n".join(lines)


# -- flags


def _read_flags(env: BaseEnvConfig, servers: Mapping[str, APIServerConfig], arguments: Sequence[str]) -> dict[str, Any]:
    """What was given, as nested raw values; pydantic judges them together with everything else."""
    fields: dict[str, Any] = {name: (Any, field.default) for name, field in ServerManagerConfig.model_fields.items()}
    # No default: the environment's own may lack fields that must be given.
    fields |= {"env": (type(env), ...), "config": (str | None, None)}
    fields |= {name: (type(server), server) for name, server in servers.items()}
    flags = create_model("Flags", __base__=BaseSettings, **fields)
    pairs = _pairs(arguments)
    given = [f"--{name}={value}" for name, value in pairs if value != "None"]
    try:
        source = CliSettingsSource[Any](flags, cli_parse_args=given, cli_exit_on_error=False, cli_avoid_json=True)
        nested: dict[str, Any] = source()
    except SettingsError as error:
        raise _flag_error(str(error), fields) from error
    for name, value in pairs:
        if value == "None":
            _set_none(nested, name, fields)
    return nested


def _pairs(arguments: Sequence[str]) -> list[tuple[str, str]]:
    """Flags without their dashes, each with its value, which may itself start with a dash."""
    pairs: list[tuple[str, str]] = []
    rest = list(arguments)
    while rest:
        flag = rest.pop(0)
        if not _FLAG.fullmatch(flag):
            raise UsageError(f"unexpected argument {flag!r}", "flags look like --env.group_size 8")
        name, has_value, value = flag.removeprefix("--").partition("=")
        if has_value:
            pairs.append((name, value))
        elif rest and not _FLAG.fullmatch(rest[0]):
            pairs.append((name, rest.pop(0)))
        elif name in SWITCHES:
            pairs.append((name, "true"))
        else:
            raise UsageError(f"--{name} needs a value", f"write --{name} VALUE")
    return pairs


def _set_none(nested: dict[str, Any], flag: str, fields: Mapping[str, Any]) -> None:
    """`None` on the command line is None, whatever the type of the field."""
    known = _known_flags(fields)
    if flag not in known:
        raise _unknown_flag(flag, known)
    *sections, field = flag.split(".")
    for section in sections:
        nested = nested.setdefault(section, {})
    nested[field] = None


def _known_flags(fields: Mapping[str, Any]) -> list[str]:
    names: list[str] = []
    for name, (kind, _) in fields.items():
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            names += [f"{name}.{field}" for field in kind.model_fields]
        else:
            names.append(name)
    return names


def _flag_error(told: str, fields: Mapping[str, Any]) -> UsageError:
    """pydantic-settings' words about a flag in ours."""
    if unknown := re.search(r"unrecognized arguments: --([^=\s]+)", told):
        return _unknown_flag(unknown[1], _known_flags(fields))
    if malformed := re.search(r"Parsing error encountered for ([\w.]+): (.*)", told, re.DOTALL):
        return UsageError(f"--{malformed[1]}: {malformed[2]}", "write lists and mappings as JSON")
    return UsageError(told.removeprefix("error parsing CLI: "), "see --help")


def _unknown_flag(flag: str, known: Sequence[str]) -> UsageError:
    close = difflib.get_close_matches(flag, known, n=1)
    return UsageError(f"unknown flag --{flag}", f"did you mean --{close[0]}?" if close else "see --help")


# -- file


def _read_file(path: str | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        content = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"--config {path}: {error.strerror or error}", "give a YAML file that can be read") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        told = " ".join(str(error).split())
        raise UsageError(f"--config {path} is not YAML: {told}", "mend the file") from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise UsageError(f"--config {path} is not a mapping", f"its keys are {', '.join(FILE_KEYS)}")
    for key in content.keys() - set(FILE_KEYS):
        logger.warning("--config %s: nothing reads the key %r", path, key)
    return content


def _section(file: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    section = file.get(name) or {}
    if not isinstance(section, Mapping):
        raise UsageError(f"{name!r} of the --config file is not a mapping", "write its fields as keys")
    return section


# -- merging


def _servers(
    default: ServerBaseline | Sequence[APIServerConfig], file: Any, flags: Mapping[str, Any]
) -> list[APIServerConfig] | ServerBaseline:
    """The servers: one server is changed by the file's mapping and the flags, a list in the file replaces all."""
    servers = [default] if isinstance(default, APIServerConfig) else default
    if isinstance(file, list):
        if not all(isinstance(entry, Mapping) for entry in file):
            raise UsageError("'openai' of the --config file lists something else than mappings", "list base_url: …")
        base = [APIServerConfig()] if isinstance(servers, ServerBaseline) or not servers else servers
        below = base[0].model_dump() if len(file) == 1 else {}
        servers = [_validated(type(base[0]), _merged(below, entry), "openai") for entry in file]
    changes = _merged(dict(file) if isinstance(file, Mapping) else {}, flags)
    if not changes:
        return servers if isinstance(servers, ServerBaseline) else list(servers)
    if isinstance(servers, ServerBaseline):
        return [_validated(APIServerConfig, _merged(servers.model_dump(), changes), "openai")]
    if len(servers) > 1:
        given = f"--openai.{next(iter(flags))}" if flags else "the mapping 'openai' of the --config file"
        raise UsageError(
            f"{given} is for one server, and there are {len(servers)}", "list the servers in a --config file instead"
        )
    start = servers[0] if servers else APIServerConfig()
    return [_validated(type(start), _merged(start.model_dump(), changes), "openai")]


def _default_teacher(environment: type[BaseEnv]) -> ServerBaseline | Sequence[APIServerConfig] | None:
    """The teacher's servers of an environment that distils one, which `--teacher.*` changes; None for all others."""
    teacher_config_init = getattr(environment, "teacher_config_init", None)
    return None if teacher_config_init is None else teacher_config_init() or []


def _server_template(default: ServerBaseline | Sequence[APIServerConfig]) -> APIServerConfig:
    """A config with the fields and, for a single server, the defaults that `--openai.*` can change."""
    if isinstance(default, APIServerConfig):
        return default
    if isinstance(default, ServerBaseline):
        return APIServerConfig(**default.model_dump())
    return default[0] if default else APIServerConfig()


def _server_sources(
    section: str,
    servers: Sequence[APIServerConfig] | ServerBaseline,
    default: ServerBaseline | Sequence[APIServerConfig],
    file: Any,
    flags: Mapping[str, Any],
) -> dict[str, str]:
    """Where the value of each server's field is from; a list in the file replaces the environment's own servers."""
    own = [default] if isinstance(default, ServerBaseline) else list(default)
    entries = file if isinstance(file, list) else [file or {}] * len(own)
    sources: dict[str, str] = {}
    for index, (prefix, server) in enumerate(server_sections(section, servers)):
        replaced = index >= len(own) or (isinstance(file, list) and len(file) > 1)
        entry = entries[index] if index < len(entries) else {}
        start = type(server)() if replaced else own[index]
        below = type(server).model_construct(**start.model_dump())
        sources |= field_sources(prefix, below, {"file": entry, "flag": flags})
    return sources


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Mappings are merged, everything else is replaced."""
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        merged[key] = _merged(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return merged


def _validated(model: type[M], values: Mapping[str, Any], section: str) -> M:
    try:
        return model.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in ([section] if section else []) + list(first["loc"]))
        value = repr(first.get("input"))
        raise UsageError(f"--{field} {value[:80]}: {first['msg']}", "give another value") from error
