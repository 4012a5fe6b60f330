"""The memory of a policy as bytes, for checkpoints."""

from __future__ import annotations

import pickle
from typing import Any

PROTOCOL = 5
"""Of Python 3.8 and later: the same bytes on all versions that the package supports."""


def save(policy: Any) -> bytes:
    """What `state` returns, or else the attributes of the object."""
    state = policy.state() if hasattr(policy, "state") else policy.__getstate__()
    try:
        return pickle.dumps(state, protocol=PROTOCOL)
    except Exception as error:
        kind = type(policy).__name__
        message = (
            f"the memory of {kind} cannot be pickled ({error}), so that its runs cannot be saved on their way; give "
            f"{kind} the methods state(self), which returns something that can, and restore(self, state)"
        )
        raise TypeError(message) from error


def load(policy: Any, saved: bytes) -> None:
    """Gives it to `restore`, or else puts the attributes back."""
    state = pickle.loads(saved)
    if hasattr(policy, "restore"):
        policy.restore(state)
    elif hasattr(policy, "__setstate__"):
        policy.__setstate__(state)
    else:
        attributes, slots = state if isinstance(state, tuple) else (state, None)
        policy.__dict__.clear()
        policy.__dict__.update(attributes or {})
        for name, value in (slots or {}).items():
            setattr(policy, name, value)
