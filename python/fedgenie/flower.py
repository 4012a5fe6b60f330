"""Flower: clients of a real federation chosen by policies of FedGenie, and ClientApps trained under FedGenie's clock."""

from __future__ import annotations

from fedgenie._flower import ClientApp, register_identity
from fedgenie._flower_task import Task
from fedgenie._replay import replay
from fedgenie._selecting import Selecting

__all__ = ["Selecting", "Task", "identify", "replay"]


def identify(app: ClientApp) -> ClientApp:
    """Lets a ClientApp tell its `partition-id`, by which `Selecting` knows the client again. Returns the same app.

    Nodes have random numbers, and only they know their configuration. The app answers one more kind of question,
    `query.fedgenie_identify`. An app that is made of a `client_fn` takes no further functions: give `partitions=` to
    `Selecting`.
    """
    try:
        register_identity(app)
    except ValueError as error:
        message = f"this ClientApp takes no further function ({error}); give partitions= to Selecting"
        raise ValueError(message) from error
    return app
