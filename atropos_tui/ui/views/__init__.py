"""One rollout as text: its messages, or its tokens under a lens. Pure; the trajectory pane scrolls through them."""
