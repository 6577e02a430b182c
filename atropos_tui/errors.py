"""The project's exceptions. Each says in one line what is wrong and what to do about it."""

from __future__ import annotations


class AtroposError(Exception):
    """Something went wrong that the user can mend. `str()` is one line: the fault, then the remedy."""

    def __init__(self, fault: str, remedy: str = "") -> None:
        self.fault = fault
        self.remedy = remedy
        super().__init__(f"{fault}; {remedy}" if remedy else fault)


class UsageError(AtroposError):
    """A wrong file, flag, value or address given by the user; exit status 2."""


class InferenceError(AtroposError):
    """An inference server failed or gave an answer that cannot be trained on.

    `kind` is a short word for counting: `connect`, `timeout`, `http_500`, `malformed`, `no_logprobs`, `unhealthy` …
    """

    def __init__(self, fault: str, remedy: str = "", *, kind: str = "error") -> None:
        self.kind = kind
        super().__init__(fault, remedy)


class ContractError(AtroposError):
    """Code of an environment broke what the runtime relies on: a wrong type, shape or template."""
