"""The trajectory API: the server between environments and trainers.

It speaks the wire of `run-api` of atroposlib 0.4.0 (`wire.py`; `/openapi.json` and `/docs` when it runs), so that every
trainer and environment that speaks to that server can speak to this one. Where it differs, it is on purpose:

- `/batch` makes one batch a call, of the oldest groups, and `current_step` counts the batches that were delivered. A
  batch leaves the queue when its answer has been sent; if the client goes away before, it is put back.
- `/register` always counts: the same settings join the run, or begin it anew after its `num_steps`; others are
  applied. 409 when the environments that are here can never fill such a batch. Groups that came before the trainer are
  kept for it.
- `/register-env` answers 200 with a `status` in words to an environment whose groups can never be part of a batch, as
  it does to one that is too early. One that comes back gets its former id: by its `run_id`, or by its name once the
  former has been silent for a minute or has disconnected. `desired_name` may be null.
- `/status-env` changes nothing, takes the id from body or query, and answers 404 for an unknown one.
- `/scored_data` and `/scored_data_list` refuse with 422 what no trainer could use (lengths that do not match, NaN,
  messages without role or content, groups larger than a batch), naming field, sequence and position. They honour the
  header `Idempotency-Key` (see `intake.py`): a sender whose answer got lost may simply send again.
- Batches are any subset of exactly the right size, so that no group blocks another. Groups below their environment's
  size wait for partners as they do upstream, but not for ever. Minimum shares are met whenever the environments that
  are there could meet them; one that is silent for a minute holds back nothing.
- `/inspect/…` and `/metrics` look without taking; `/inspect/why` says why there is no batch.
- It listens on loopback unless there is a token, sends no CORS headers, and bounds every body.

`--strict-upstream` takes all of this back, for comparisons.
"""
