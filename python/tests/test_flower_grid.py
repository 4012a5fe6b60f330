"""Replies of a SuperLink, received side by side."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr", reason="flwr is not installed: nothing of fedgenie.flower was tested")
http_grid = pytest.importorskip("flwr.superlink.grid.http_grid")

from federation import adds, first
from fedgenie._flower import Arrival, WatchedGrid
from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.app.message import remove_content_from_message
from flwr.common.serde import message_to_proto
from flwr.proto.message_pb2 import PullObjectResponse
from flwr.supercore.inflatable.inflatable_object import get_all_nested_objects, get_object_tree


class SuperLink:
    """The replies of some nodes. Those of node 1 are announced at once, and uploaded once node 2's is found."""

    def __init__(self) -> None:
        self.announced: dict[str, tuple[Any, Any]] = {}
        self.objects: dict[str, bytes] = {}
        self.slow: set[str] = set()
        self.is_uploaded = threading.Event()
        self.requests: list[list[str]] = []
        self.received: list[str] = []

    def add(self, reply: Message, is_slow: bool) -> None:
        reply.metadata.__dict__["_message_id"] = reply.object_id
        objects = {number: made.deflate() for number, made in get_all_nested_objects(reply).items()}
        if is_slow:
            self.slow |= set(objects) - set(self.objects)
        self.objects |= objects
        proto = message_to_proto(remove_content_from_message(reply))
        self.announced[reply.metadata.reply_to_message_id] = proto, get_object_tree(reply)

    def PullMessages(self, request: Any) -> Any:
        self.requests.append(list(request.message_ids))
        found = [self.announced.pop(number) for number in request.message_ids if number in self.announced]
        protos, trees = [proto for proto, _ in found], [tree for _, tree in found]
        return http_grid.PullAppMessagesResponse(messages_list=protos, message_object_trees=trees)

    def PullObject(self, request: Any) -> Any:
        is_there = request.object_id not in self.slow or self.is_uploaded.is_set()
        content = self.objects[request.object_id] if is_there else b""
        return PullObjectResponse(object_found=True, object_available=is_there, object_content=content)

    def ConfirmMessageReceived(self, request: Any) -> None:
        self.received.append(request.message_object_id)


def grid_of(link: SuperLink) -> Any:
    """Flower's own grid, whose nodes answer as soon as they are written to."""
    grid, app = http_grid.HttpGrid(token="any"), adds()
    grid._client = link
    grid._run = type("Run", (), {"run_id": 1})()

    def push(messages: Iterable[Message]) -> Sequence[str]:
        numbers = []
        for message in messages:
            node = message.metadata.dst_node_id
            message.metadata.__dict__["_message_id"] = f"message-{node}"
            context = Context(1, node, {"partition-id": node}, RecordDict(), {})
            link.add(app(message, context), node == 1)
            numbers.append(f"message-{node}")
        return numbers

    grid.push_messages = push
    return grid


@pytest.fixture(autouse=True)
def identity() -> None:
    from flwr.supercore.task_identity import TaskIdentity

    TaskIdentity.task_id, TaskIdentity.run_id, TaskIdentity.node_id = 1, 1, 1


def message(node: int) -> Message:
    content = {"arrays": first(), "config": ConfigRecord({"server-round": 1})}
    return Message(RecordDict(content), node, "train")


def test_a_slow_upload_hides_no_other_reply() -> None:
    link, order = SuperLink(), list[int]()

    def found(arrival: Arrival) -> None:
        order.append(arrival.node)
        if arrival.node == 2:
            # If the reply of node 2 had to wait for that of node 1, this would never happen.
            link.is_uploaded.set()

    watched = WatchedGrid(grid_of(link), 0.01, found)
    exchange = watched.exchange([message(1), message(2)], 20.0)
    assert order == [2, 1] and not exchange.missing and not watched.busy
    for arrival in exchange.arrivals:
        values = arrival.message.content["arrays"]["w"].numpy()
        assert values == pytest.approx(np.arange(3) + (arrival.node + 1) / 7, rel=1e-6)
    assert len(link.received) == 2, "each is confirmed once"
    assert link.requests[0] == ["message-1", "message-2"] and all(not asked for asked in link.requests[1:] if not asked)
    assert all("message-1" not in asked and "message-2" not in asked for asked in link.requests[1:])


def test_a_reply_that_is_whole_after_the_timeout_frees_its_node() -> None:
    link = SuperLink()
    watched = WatchedGrid(grid_of(link), 0.01, lambda arrival: None)
    exchange = watched.exchange([message(1), message(2)], 0.3)
    assert exchange.missing == [1] and watched.busy == {1}
    link.is_uploaded.set()
    for _ in range(500):
        watched.look_for_late()
        if not watched.busy:
            break
        threading.Event().wait(0.01)
    assert not watched.busy
    pauses = http_grid.pull_objects.__name__
    assert pauses == "pull_objects", "Flower's own function is put back"


def test_an_error_while_receiving_is_not_swallowed() -> None:
    link = SuperLink()

    def refuses(request: Any) -> None:
        message = "the SuperLink went away"
        raise ConnectionError(message)

    link.ConfirmMessageReceived = refuses  # type: ignore[method-assign]
    with pytest.raises(ConnectionError, match="went away"):
        WatchedGrid(grid_of(link), 0.01, lambda arrival: None).exchange([message(2)], 20.0)
