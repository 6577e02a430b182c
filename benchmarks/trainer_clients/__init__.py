"""Clients of trainers that others wrote, from checkouts of theirs, against our trajectory API."""
