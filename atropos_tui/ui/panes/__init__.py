"""The panes of the dashboard. Each draws one section of the snapshot and holds nothing but where its cursor is."""
