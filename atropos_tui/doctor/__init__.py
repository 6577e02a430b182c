"""What this terminal and this machine can do for the screen, and what to change where they cannot."""
