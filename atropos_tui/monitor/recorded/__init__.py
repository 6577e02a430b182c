"""Runs that are read from files: run files and JSONL of scored groups, in the same screens as live ones."""
