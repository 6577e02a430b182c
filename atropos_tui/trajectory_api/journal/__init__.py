"""What was accepted and not yet delivered, on disk: a file that one server appends to, and reads at its start.

    file: header, record, record, …    record: check sum, two lengths, what it tells (JSON), the text of a group

A group is in the file before its sender gets a 2xx. What is delivered is noted behind it, and when the file has grown
enough a thread writes what still counts into a new one (`rewriting.py`). The file survives the end of the process,
however it ends; it is not flushed to the disk at each step, so the end of the machine may cost the newest records.

A data base does the same in twice the time, which is a third of the time that a group takes altogether.
"""

from atropos_tui.trajectory_api.journal.contents import KEYS_REMEMBERED
from atropos_tui.trajectory_api.journal.journal import Journal

__all__ = ["KEYS_REMEMBERED", "Journal"]
