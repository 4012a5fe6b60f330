"""Algorithms of one's own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fedgenie._fedgenie import Updates

__all__ = ["Algorithm"]


class Algorithm(ABC):
    """The server's step: how the updates of a round become the next model. Give it as `algorithm=` to `fedgenie.run`.

    One object serves all runs. What it remembers from round to round is in `updates.memory`, `memory` numbers for each
    parameter of the model.
    """

    memory: int = 0

    @abstractmethod
    def fold(self, updates: Updates) -> NDArray[np.float32]:
        """The next model, all parameters in a row."""
