"""Stands beside the environment."""

WORDS = ("one", "two")


def score(word):
    return float(len(word))
