"""The ClientApp: it sleeps for a drawn time, and trains."""

from __future__ import annotations

import time

from fedgenie.flower import identify
from flwr.app import Array, ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from links import digits

app = identify(ClientApp())


@app.train()
def train(message: Message, context: Context) -> Message:
    client = int(context.node_config["partition-id"])
    round = int(message.content["config"]["server-round"])
    if client == context.run_config.get("fails", -1):
        text = "the disk is full"
        raise OSError(text)
    began = time.monotonic()
    if context.run_config.get("sleeps", False):
        time.sleep(digits.seconds(client, round, int(context.run_config["seed"])))
    weights, loss = digits.train(client, round, message.content["arrays"]["weights"].numpy())
    content = {
        "arrays": ArrayRecord({"weights": Array(weights)}),
        "metrics": MetricRecord(
            {"num-examples": digits.EXAMPLES, "train_loss": loss, "compute_s": time.monotonic() - began}
        ),
    }
    return Message(RecordDict(content), reply_to=message)
