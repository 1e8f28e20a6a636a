"""Runs every command that README, docs and examples show, page by page in the order of the page, in a folder of tiny models, data and
runs (fixtures.py); and holds what the pages say against the program (tools/check_docs). How a page writes a command: tools/doc_pages.py.

    run_commands.py KEDGE [PAGE ...]      only these pages

A command that cannot be run here stands in not_run.txt with the reason and the test or script that does run it.
"""
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT / "tools"), str(ROOT / "tests/net")]
import doc_pages  # noqa: E402
import fault_support  # noqa: E402
import fixtures  # noqa: E402

TIME_LIMIT_S = 120
WORKERS = 2  # pages at a time
READY = re.compile(rb"kill -SIGINT|https?://")
PORT = re.compile(r"([a-zA-Z0-9]:|\bport=|--port[ =]|/kedge-\$\(id -u\)/)(\d{4,5})\b")


class NotRun:
    """The lines of not_run.txt: beginning of a command | reason | test or script that runs it."""

    def __init__(self, path):
        self.entries = []
        for number, line in enumerate(path.read_text().split("\n"), 1):
            if line.strip() and not line.startswith("#"):
                parts = [part.strip() for part in line.split(" | ")]
                if len(parts) != 3 or not all(parts):
                    raise SystemExit(f"{path.name}:{number}: wants: command | reason | test or script that runs it")
                self.entries.append((number, *parts))
        self.used = set()

    def takes(self, command):
        text = " ".join(command.text.split())
        for number, beginning, _, _ in self.entries:
            if text.startswith(beginning):
                self.used.add(number)
                return True
        return False

    def faults(self, all_pages):
        for number, beginning, _, runner in self.entries:
            if not (ROOT / runner).is_file():
                yield f"tests/docs/not_run.txt:{number}: {runner} is not there"
            if all_pages and number not in self.used:
                yield f"tests/docs/not_run.txt:{number}: no page has a command that begins with: {beginning}"


class Workplace:
    """One page's copy of the prepared folder, its ports, and the processes it started."""

    def __init__(self, prepared, kedge):
        self.folder = Path(tempfile.mkdtemp(prefix="kedge-page-"))
        subprocess.run(["cp", "-a", f"{prepared}/.", str(self.folder)], check=True)
        self.ports, self.servers, self.logs, self.cwd = {}, [], [], self.folder
        for usual in ("5555", "5556"):
            self.port_for(usual)
        (self.folder / ".bin").mkdir()
        (self.folder / ".bin/kedge").write_text(f'#!/bin/sh\nexec "{sys.executable}" "{HERE / "kedge_in_pages.py"}" "$@"\n')
        (self.folder / ".bin/kedge").chmod(0o755)
        self.environment = {**os.environ, "PATH": f"{self.folder}/.bin:{os.environ['PATH']}", "KEDGE_PROGRAM": kedge, "OMP_NUM_THREADS": "1",
                            "HOME": str(self.folder), "COLUMNS": "80"}

    def port_for(self, usual):
        while usual not in self.ports:
            port = str(fault_support.free_port())
            if port not in self.ports.values():
                self.ports[usual] = port
        return self.ports[usual]

    def run(self, command):
        """None, or what went wrong."""
        text = PORT.sub(lambda match: match.group(1) + self.port_for(match.group(2)), command.text)
        self.environment["KEDGE_PAGE_PORTS"] = " ".join(f"{usual}={port}" for usual, port in self.ports.items())
        change = re.match(r"cd (\S+)\s*(#.*)?$", text)
        if change:
            self.cwd = self.cwd / change.group(1)
            return None
        if text.startswith("export "):
            self.environment.update(word.split("=", 1) for word in doc_pages.words_of(text)[1:])
            return None
        log = open(self.folder / f".log{len(self.logs)}", "w+b")
        self.logs.append(log)
        if command.in_background:
            text = re.sub(r"&\s*(#.*)?$", "", text)
        process = subprocess.Popen(["bash", "-c", "exec 2>&1\n" + text], cwd=self.cwd, env=self.environment, stdin=subprocess.DEVNULL, stdout=log,
                                   start_new_session=True)
        if command.in_background:
            self.servers.append(process)
            return self.wait_until_ready(process, log)
        try:
            code = process.wait(TIME_LIMIT_S)
        except subprocess.TimeoutExpired:
            code = f"nothing after {TIME_LIMIT_S} s (a server wants & at its end)"
        self.end(process)
        return None if code == command.exit_code else f"wanted exit code {command.exit_code}, found {code}:\n{shown(log)}"

    def wait_until_ready(self, process, log):
        until = time.monotonic() + TIME_LIMIT_S
        while time.monotonic() < until:
            log.seek(0)
            if READY.search(log.read()):
                return None
            if process.poll() is not None:
                return f"ended with {process.returncode} before it was ready:\n{shown(log)}"
            time.sleep(0.02)
        return f"not ready after {TIME_LIMIT_S} s:\n{shown(log)}"

    def end(self, process):
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()

    def close(self):
        for process in self.servers:
            self.end(process)
        for log in self.logs:
            log.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def shown(log):
    log.seek(0)
    lines = log.read().decode(errors="replace").split("\n")
    return "\n".join("    " + line for line in lines[-20:])


def run_page(page, commands, prepared, kedge):
    if not commands:
        return []
    begin, faults, place = time.monotonic(), [], Workplace(prepared, kedge)
    try:
        for command in commands:
            fault = place.run(command)
            if fault:
                faults.append(f"{page.path}:{command.line}: $ {command.text}\n  {fault}")
    finally:
        place.close()
    print(f"{time.monotonic() - begin:6.1f} s  {page.path}: {len(commands)} command{'s' if len(commands) > 1 else ''}", flush=True)
    return faults


def main():
    kedge, wanted = os.path.realpath(sys.argv[1]), sys.argv[2:]
    pages = [page for page in doc_pages.read_pages(str(ROOT)) if not wanted or page.path in wanted]
    not_run = NotRun(HERE / "not_run.txt")
    to_run = {}
    for page in pages:
        commands = [command for block in page.blocks for command in block.commands() if command.text.split("#")[0].strip() != "echo $?"]
        to_run[page.path] = [command for command in commands if not not_run.takes(command)]
    faults = list(not_run.faults(all_pages=not wanted))
    prepared = tempfile.mkdtemp(prefix="kedge-pages-")
    try:
        begin = time.monotonic()
        metrics = fixtures.prepare(kedge, prepared)
        print(f"{time.monotonic() - begin:6.1f} s  models, data and runs", flush=True)
        begin = time.monotonic()
        check = subprocess.run([sys.executable, str(ROOT / "tools/check_docs"), str(ROOT), "--kedge", kedge, "--metrics", *map(str, metrics)],
                               capture_output=True, text=True)
        if check.returncode != 0:
            faults.append((check.stdout + check.stderr).rstrip())
        print(f"{time.monotonic() - begin:6.1f} s  tools/check_docs", flush=True)
        with ThreadPoolExecutor(WORKERS) as pool:
            for page_faults in pool.map(lambda page: run_page(page, to_run[page.path], prepared, kedge), pages):
                faults += page_faults
    finally:
        shutil.rmtree(prepared, ignore_errors=True)
    if not wanted and not any(to_run.values()):
        faults.append("no page has a command that is run")
    print("\n".join(faults) if faults else "every command runs")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
