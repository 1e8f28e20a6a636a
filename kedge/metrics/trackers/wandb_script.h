#pragma once
// The Python program that passes metrics to the user's wandb package. It reads JSON lines, first the settings, then one per row, and
// reports on standard output which row is on disk (offline) or at W&B (online); what wandb prints goes to standard error. A row's number is
// W&B's step, which only increases, so W&B itself drops a row that is sent twice.

namespace kedge {

inline constexpr const char* kWandbScript = R"python(
import glob, json, os, select, struct, sys, time

out = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)


def say(**message):
    print(json.dumps(message), file=out, flush=True)


class RowsOnDisk:
    """Follows a .wandb file: LevelDB's log format, blocks of 32 KiB, of wandb's own messages. wandb writes every 15 seconds."""

    def __init__(self, path):
        self.path, self.position, self.last = path, 7, -1

    def look(self):
        try:
            with open(self.path, "rb") as file:
                file.seek(self.position)
                data = file.read()
        except FileNotFoundError:
            return self.last
        at, begin, parts = 0, 0, b""
        while True:
            left = 32768 - (self.position + at) % 32768
            if left < 7:
                at += left
                continue
            if at + 7 > len(data):
                break
            size, kind = struct.unpack("<HB", data[at + 4:at + 7])
            if kind == 0 or at + 7 + size > len(data):
                break
            parts += data[at + 7:at + 7 + size]
            at += 7 + size
            if kind in (1, 4):
                record = wandb_internal_pb2.Record.FromString(parts)
                if record.WhichOneof("record_type") == "history":
                    self.last = max(self.last, record.history.step.num)
                begin, parts = at, b""
        self.position += begin
        return self.last


def lines():
    """Lines of standard input; None at least once a second."""
    buffer = b""
    while True:
        if select.select([0], [], [], 1.0)[0]:
            data = os.read(0, 1 << 16)
            if not data:
                return
            buffer += data
            *complete, buffer = buffer.split(b"\n")
            yield from (json.loads(line) for line in complete)
        yield None


def main():
    settings = None
    feed = lines()
    while settings is None:
        settings = next(feed)
    init = settings["init"]
    before = glob.glob(os.path.join(glob.escape(init["dir"]), "wandb", "*run-*-" + glob.escape(init["id"]), "run-*.wandb"))
    run = wandb.init(resume="allow", config=settings["config"], settings=wandb.Settings(console="off"), **init)
    run.define_metric("trainer/global_step")
    run.define_metric("*", step_metric="trainer/global_step", step_sync=True)
    mode = run.settings.mode
    on_disk = None
    if mode == "offline":
        found = glob.glob(os.path.join(glob.escape(os.path.dirname(run.dir)), "run-*.wandb"))
        on_disk = RowsOnDisk(found[0])
        kept = max([RowsOnDisk(path).look() for path in before], default=-1)
    else:
        kept = run.step - 1
    say(kept=kept)
    told, last, exit_code, told_at = kept, kept, 1, 0.0
    for message in feed:
        if message is not None and "row" in message:
            last = message["row"]
            numbers = {name: float(value) for name, value in message["numbers"].items()}
            run.log({**numbers, "trainer/global_step": message["step"], "_timestamp": message["time_ms"] / 1000}, step=last)
        elif message is not None:
            exit_code = message["exit_code"]
        if on_disk is not None and last > told and time.monotonic() - told_at >= 1:
            told_at = time.monotonic()
            if on_disk.look() > told:
                told = on_disk.last
                say(kept=told)
    run.finish(exit_code=exit_code)
    until = time.monotonic() + 10  # the file may be written a moment later
    while on_disk is not None and on_disk.look() < last and time.monotonic() < until:
        time.sleep(0.01)
    say(kept=last if on_disk is None else max(kept, on_disk.last), finished=True)


try:
    import wandb
    from wandb.proto import wandb_internal_pb2

    main()
except Exception as error:
    say(error=f"{type(error).__name__}: {error}")
    sys.exit(1)
)python";

}  // namespace kedge
