"""What panes are drawn with. Drawing is pure functions of data, width and height; one widget repaints what changed."""
