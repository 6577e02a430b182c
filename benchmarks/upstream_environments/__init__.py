"""Environment files of the atroposlib repository, unedited, on our runtime and on atroposlib: what differs is told.

    python -m benchmarks.upstream_environments CHECKOUT [--mode process|serve|check] [--files FILE … | --all]
    python -m benchmarks.upstream_environments CHECKOUT --table

CHECKOUT is a clone of the atroposlib repository. Without `--files` or `--all`, the 32 files that gave groups or metrics
on atroposlib 0.4.0 are run. `process` runs evaluations with `evaluate` instead. `serve` runs each file three times: on
upstream to upstream's `run-api`, here to upstream's `run-api`, and here to our trajectory API, always through a proxy
that keeps what is posted. `check` only loads the files, here. Results stay in `--output` as JSON, with the log of each
run; `--table` makes the figures and the table of docs/compatibility.md of what is there.

Nothing comes from the network. Inference is `fake_server`, a vLLM and OpenAI server on loopback whose replies depend
on the prompt and the number of the choice alone, right for even choices and wrong for odd ones. `stand_ins/`, on the
path of both sides, gives `datasets.load_dataset` 240 made-up rows in the columns of the data set that is asked for, any
tokenizer that isn't a local directory a small one, and the random generators of every item a seed of its own.

Both sides run in the same virtual environment; only upstream finds the `atroposlib` of CHECKOUT. It needs ours and

    pip install aiohttp datasets gymnasium==1.1.1 jsonlines langdetect latex2sympy2-extended markdown math-verify \\
        matplotlib pillow polars pydantic-cli python-dotenv reasoning-gym requests scikit-learn tenacity wandb

and, for files beyond the 32: asteval beautifulsoup4 nltk scipy toml xmltodict.
"""
