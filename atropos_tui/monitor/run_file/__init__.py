"""The run file: one SQLite file a run, written by the run's worker only, read by everybody else."""
