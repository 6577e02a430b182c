"""The screen: what Textual draws of a run, and the keys to it."""
