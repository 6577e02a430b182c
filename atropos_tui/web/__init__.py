"""The screen in a browser: textual-serve, kept to this machine, with one process of the screen for each tab."""
