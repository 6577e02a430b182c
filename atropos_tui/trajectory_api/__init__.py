"""The trajectory API: the server between environments and trainers, wire-compatible with atroposlib's `run-api`."""
