"""Which environment files are run, and with what flags."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path

# Files that gave groups or metrics on atroposlib 0.4.0, offline; below `environments/`.
RAN_ON_UPSTREAM = (
    "gsm8k_server.py",
    "gsm8k_server_axolotl.py",
    "math_server.py",
    "math_server_zero.py",
    "mcqa_thinking_env.py",
    "swe_rl_env.py",
    "text_reversal_environment.py",
    "tool_calling_server.py",
    "community/cat_behavior_env/catbot_arena.py",
    "community/conversational_style_dpo/gsmk8k_conversational_style_dpo_env.py",
    "community/cybersecurity_sigma/jaccard_reward_env.py",
    "community/cybersecurity_sigma/llm_judge_env.py",
    "community/lean_proof_env/lean_proof_env.py",
    "community/metric_card_generator/metric_card_generator.py",
    "community/regex_generation/regex_env.py",
    "community/selcube/rubiks_cube_environment.py",
    "community/word_hunt/word_hunt_env.py",
    "game_environments/gymnasium/gym_taxi.py",
    "game_environments/gymnasium/blackjack/blackjack_env_no_thinking.py",
    "game_environments/gymnasium/blackjack/blackjack_env_thinking.py",
    "multimodal_dpo/clevr_complex.py",
    "multimodal_dpo/ocr_vqa.py",
    "multimodal_dpo/pixmo_clocks.py",
    "reasoning_gym_environment/reasoning_gym_environment.py",
    "eval_environments/drop_eval.py",
    "eval_environments/gpqa_eval.py",
    "eval_environments/gsm8k_eval.py",
    "eval_environments/ifeval_eval.py",
    "eval_environments/mmlu_pro_eval.py",
    "eval_environments/musr_eval.py",
    "eval_environments/obqa_eval.py",
    "eval_environments/simpleqa_eval.py",
)

_EVALUATIONS = "eval_environments/"

_OWN_FLAGS = {
    "eval_environments/gsm8k_eval.py": (),
    "dataset_environment/dataset_env.py": (
        "--env.dataset_name", "gsm8k", "--env.dataset_config", "main", "--env.prompt_field", "question",
        "--env.answer_field", "answer",
    ),
}  # fmt: skip


def is_evaluation(file: str) -> bool:
    """Whether it is run with `evaluate` instead of `process`."""
    return file.startswith(_EVALUATIONS)


def own_flags(file: str, inference_url: str, model: str) -> tuple[str, ...]:
    """Flags that this file needs besides those of all files."""
    if "teacher_distill" in file:
        return "--teacher.base_url", inference_url, "--teacher.model_name", model, "--teacher.server_type", "vllm"
    if is_evaluation(file) and file not in _OWN_FLAGS:
        # Their own default, thinking, makes many of them slice None in `setup`.
        return "--env.thinking_mode", "false"
    return _OWN_FLAGS.get(file, ())


def environment_files(checkout: Path) -> list[str]:
    """Files below `environments/` with a class that derives, by name, from BaseEnv; of copies the first."""
    folder = checkout / "environments"
    by_content = {file.read_bytes(): file for file in sorted(folder.rglob("*.py"), reverse=True)}
    classes_of = {file: _classes(file) for file in sorted(by_content.values())}
    derived, known = {"BaseEnv", "AtroposBaseEnv", "TeacherDistillationEnv"}, 0
    while len(derived) > known:
        known = len(derived)
        derived |= {name for classes in classes_of.values() for name, bases in classes if derived & set(bases)}
    return [
        str(file.relative_to(folder))
        for file, classes in classes_of.items()
        if any(derived & set(bases) for _, bases in classes)
    ]


def _classes(file: Path) -> list[tuple[str, Sequence[str]]]:
    """Names of the classes in a file with those of their bases."""
    try:
        tree = ast.parse(file.read_text(encoding="utf-8"))
    except (SyntaxError, UnicodeDecodeError):
        return []
    return [
        (node.name, [ast.unparse(base).rpartition(".")[2] for base in node.bases])
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    ]
