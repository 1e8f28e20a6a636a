"""A row of bench/gpu_table: takes a figure from the JSON lines that a benchmark printed, adds it to a file of JSON lines and prints it for the Markdown table.

    table_row.py TABLE.jsonl GROUP WORK UNIT BAR GOAL KEY SECONDS COMMAND <OUTPUT

KEY is one of a line's, whose value is a number or {"median", "min", "max"}; OUTPUT without such a line is a failure: exit 1. Seconds are better the
fewer, everything else the more. "memory" is the plan against what was measured, where the line has both.
"""
import json, sys


def shown(value, unit):
    return f"{value / 1000:.1f}k {unit}" if unit == "tok/s" else f"{value:.2f} s" if unit == "s" else f"{value:.0f} {unit}"


def json_lines(text):
    for line in text.splitlines():
        try:
            found = json.loads(line)
        except ValueError:
            continue
        if isinstance(found, dict): yield found


def gib(line, name):
    if name + "_gib" in line: return line[name + "_gib"] or None
    return line[name + "_bytes"] / 2**30 if line.get(name + "_bytes") else None


def verdict(value, bar, goal, unit):
    share = bar / value if unit == "s" else value / bar
    reaches = (lambda wanted: value <= wanted) if unit == "s" else (lambda wanted: value >= wanted)
    return "goal" if reaches(goal) and reaches(bar) else "bar" if reaches(bar) else f"{share:.2f} of the bar"


def main():
    table, group, work, unit, bar, goal, key, seconds, command = sys.argv[1:]
    bar, goal = float(bar), float(goal)
    row = dict(group=group, work=work, unit=unit, bar=bar, goal=goal, seconds=int(seconds), command=command)
    line = next((line for line in json_lines(sys.stdin.read()) if line.get(key) is not None), None)
    value, memory = "failed", "-"
    if line is None:
        row["failed"] = True
    else:
        spread = line[key] if isinstance(line[key], dict) else {"median": line[key]}
        planned, measured = gib(line, "planned"), gib(line, "peak")
        row |= dict(value=spread["median"], spread=spread, verdict=verdict(spread["median"], bar, goal, unit), planned_gib=planned, measured_gib=measured)
        value = f"{shown(row['value'], unit)} ({row['verdict']})"
        if measured: memory = f"{measured:.1f}"
        if planned and measured:
            row["memory"] = round(planned / measured, 3)
            memory = f"{planned:.1f} / {measured:.1f}" + ("" if abs(row["memory"] - 1) <= 0.1 else " (off)")
        row["line"] = line
    with open(table, "a") as file: print(json.dumps(row), file=file)
    print(f"| {work} | {value} | {shown(bar, unit)} | {shown(goal, unit)} | {memory} | `{command}` |", flush=True)
    return 1 if line is None else 0


if __name__ == "__main__": sys.exit(main())
