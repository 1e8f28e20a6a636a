"""Compares what MLflow and W&B hold of runs with their metrics.jsonl. trackers_test.py RUN...

Every number must be with both, and nothing else; of the run named killed, times of steps that were done twice must be there besides."""
import collections
import glob
import json
import math
import struct
import sys

from mlflow.tracking import MlflowClient
from wandb.proto import wandb_internal_pb2

LARGEST = sys.float_info.max  # MLflow's stores keep it in the place of infinity


def key_of(value):
    return "NaN" if math.isnan(value) else value


def numbers_of_file(folder):
    points = collections.Counter()
    for line in open(folder + "/metrics.jsonl"):
        row = json.loads(line)
        for name, value in row.items():
            if name not in ("step", "time"):
                points[row["step"], name, key_of(float(value))] += 1
    return points


def numbers_of_mlflow(folder):
    run_id = json.load(open(folder + "/trackers/mlflow.json"))["link"]["run_id"]
    client = MlflowClient()
    run = client.get_run(run_id)
    assert run.info.status == "FINISHED", run.info.status
    assert run.data.params["exp_manager.create_mlflow_logger"] in ("true", "false"), run.data.params
    points = collections.Counter()
    for name in run.data.metrics:
        for point in client.get_metric_history(run_id, name):
            points[point.step, name, key_of(point.value)] += 1
    return points


def records(path):
    """Of LevelDB's log format, in which W&B keeps them."""
    data = open(path, "rb").read()
    at, parts = 7, b""
    while at + 7 <= len(data):
        left = 32768 - at % 32768
        if left < 7:
            at += left
            continue
        size, kind = struct.unpack("<HB", data[at + 4:at + 7])
        if kind == 0 or at + 7 + size > len(data):
            break  # cut short by a kill
        parts += data[at + 7:at + 7 + size]
        at += 7 + size
        if kind in (1, 4):  # whole, or the last part
            yield wandb_internal_pb2.Record.FromString(parts)
            parts = b""


def numbers_of_wandb(folder):
    points, steps = collections.Counter(), []
    for path in sorted(glob.glob(folder + "/wandb/offline-run-*/run-*.wandb")):
        for record in records(path):
            if record.WhichOneof("record_type") != "history":
                continue
            row = {item.key or ".".join(item.nested_key): json.loads(item.value_json) for item in record.history.item}
            steps.append(row["_step"])
            for name, value in row.items():
                if not name.startswith("_") and name != "trainer/global_step":
                    points[row["trainer/global_step"], name, key_of(float(value))] += 1
    assert steps == sorted(set(steps)), "W&B's own steps do not grow"
    return points


def compare(whose, held, wanted, resumed):
    missing, extra = wanted - held, held - wanted
    is_time = lambda name: name.startswith("timers/") or name == "train/step_time"
    wrong = [point for point in extra if not (resumed and is_time(point[1]))]
    print(f"{whose}: {sum(wanted.values())} numbers wanted, {sum(held.values())} held, {sum(missing.values())} missing, "
          f"{sum(extra.values())} further ones, {len(wrong)} of them wrong")
    for point in list(missing)[:5]:
        print("  missing", point)
    for point in wrong[:5]:
        print("  wrong", point)
    return not missing and not wrong and (resumed or not extra), sum(extra.values())


def check(folder):
    resumed = folder == "killed"
    wanted = numbers_of_file(folder)
    assert wanted
    finite = collections.Counter()
    for (step, name, value), count in wanted.items():
        is_infinite = value != "NaN" and math.isinf(value)
        finite[step, name, math.copysign(LARGEST, value) if is_infinite else value] += count
    good, extra = compare(folder + ", MLflow", numbers_of_mlflow(folder), finite, resumed)
    also_good, more = compare(folder + ", W&B", numbers_of_wandb(folder), wanted, resumed)
    # Repeated steps were sent to one of them at least: on a busy machine wandb's process may not have had them yet when the run was killed.
    return good and also_good and (extra + more > 0) == resumed


sys.exit(not all([check(folder) for folder in sys.argv[1:]]))
