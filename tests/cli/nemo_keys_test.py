#!/usr/bin/env python3
"""The table of keys in docs/from_nemo_aligner.md is what kedge makes of NeMo-Aligner's own nine files, and none of their keys is unknown.

  nemo_keys_test.py KEDGE ASSETS PROJECT [--write]      --write: puts the table into the page instead of comparing it
"""
import json
import os
import pathlib
import subprocess
import sys

kedge, assets, project = sys.argv[1:4]
files = pathlib.Path(os.environ.get("KEDGE_ASSETS", assets)) / "configs/nemo-aligner"
if not files.is_dir():
    print(f"skipped: no {files}; KEDGE_ASSETS names the assets folder")
    sys.exit(77)
page = pathlib.Path(project) / "docs/from_nemo_aligner.md"
BEGIN, END = "<!-- keys of NeMo-Aligner's files: written by tests/cli/nemo_keys_test.py --write -->\n", "<!-- end of keys -->\n"
# (file, name of the configuration, its short name in the table)
FILES = [("gpt_sft", "sft", "sft"), ("training_rm", "rm", "rm"), ("gpt_ppo_actor", "ppo", "ppo"), ("gpt_ppo_critic", "serve_critic", "critic"),
         ("gpt_reinforce_actor", "reinforce", "reinforce"), ("gpt_rs_actor", "rs", "rs"), ("inference_rm", "serve_reward", "reward"), ("gpt_dpo", "dpo", "dpo"),
         ("gpt_kto", "kto", "kto")]
ORDER = {name: place for place, (_, _, name) in enumerate(FILES)}

failures = 0
rows = {}  # (key, class, note) -> short names
for file, config, short in FILES:
    found = subprocess.run([kedge, "config", config, "--keys", files / f"{file}.yaml", "--json"], capture_output=True, text=True)
    if found.returncode != 0:
        print(f"FAILED: {file}.yaml: {found.stderr}")
        failures += 1
        continue
    for line in found.stdout.splitlines():
        entry = json.loads(line)
        if entry["class"] == "unknown":
            print(f"FAILED: {file}.yaml: {entry['key']} is unknown")
            failures += 1
        # The algorithm's own name in the middle of a key is written A, so that the files share rows.
        parts = ["A" if part == config and place == 1 else part for place, part in enumerate(entry["key"].split("."))]
        note = entry["note"].replace(f".{config}.", ".A.").replace("|", "\\|")
        rows.setdefault((".".join(parts), entry["class"], note), []).append(short)

lines = ["| key | files | class | |\n", "|---|---|---|---|\n"]
for (key, kind, note), names in sorted(rows.items()):
    which = "all" if len(names) == len(FILES) else ", ".join(sorted(names, key=ORDER.get))
    lines.append(f"| {key} | {which} | {kind} | {note} |\n")
table = "".join(lines)
text = page.read_text()
if BEGIN not in text or END not in text:
    sys.exit(f"FAILED: {page}: the marks of the table are missing")
before, rest = text.split(BEGIN)
old, after = rest.split(END)
if "--write" in sys.argv:
    page.write_text(before + BEGIN + table + END + after)
elif old != table:
    print(f"FAILED: {page}: the table is not what the files give; run this test with --write")
    failures += 1
kinds = {}
for (_, kind, _), names in rows.items():
    kinds[kind] = kinds.get(kind, 0) + 1
print(f"{len(FILES)} files, {len(rows)} rows:", ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items())))
sys.exit(failures > 0)
