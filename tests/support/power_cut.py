#!/usr/bin/env python3
"""What a power cut would have left of a folder, made from the log of disk_log_shim.cpp.

  power_cut.py points LOG FOLDER BEFORE     a line for every call and variant that leaves something new: how many calls came to pass, the variant, the step of the
                                            newest checkpoint of FOLDER/run that must have survived, what the call is about, the call, its path
  power_cut.py build LOG FOLDER BEFORE POINT VARIANT OUT
                                            FOLDER as it would be after POINT calls, written to OUT

BEFORE is a copy of FOLDER from before the first call. Variants: `dropped`: names that were not synced with their folder are gone and old ones are back; contents are those of the last fsync of the file.
`emptied`: all names are there, but contents are those of the last fsync: a file that never was has no bytes. `torn`: as `emptied`, but half of what was
appended since the last fsync is there."""
import hashlib
import json
import os
import pathlib
import re
import sys


class File:
    def __init__(self, content=b""):
        self.now = bytearray(content)
        self.synced = bytes(content)
        self.prints = {}  # by variant, until the file changes

    def sync(self):
        self.synced = bytes(self.now)
        self.prints.clear()

    def content(self, variant):
        if variant == "torn" and self.now.startswith(self.synced):
            return bytes(self.now[:(len(self.synced) + len(self.now)) // 2])
        return self.synced


class Folder:
    def __init__(self):
        self.now, self.synced = {}, {}

    def sync(self):
        self.synced = dict(self.now)


def read_tree(path):
    """What stood on the disk before is safe."""
    if path.is_dir():
        folder = Folder()
        for one in path.iterdir():
            if one.is_dir() or one.is_file():
                folder.now[one.name] = read_tree(one)
        folder.sync()
        return folder
    return File(path.read_bytes())


def write_tree(node, path, variant):
    if isinstance(node, File):
        path.write_bytes(node.content(variant))
        return
    path.mkdir()
    for name, one in (node.synced if variant == "dropped" else node.now).items():
        write_tree(one, path / name, variant)


class Disk:
    def __init__(self, folder, before):
        self.top = os.path.abspath(folder)
        self.root = read_tree(pathlib.Path(before))
        self.files = {}  # by inode, of those that were opened

    def parts(self, path):
        inside = os.path.relpath(path, self.top)
        assert not inside.startswith(".."), path
        return [] if inside == "." else inside.split("/")

    def find(self, path):
        node = self.root
        for name in self.parts(path):
            node = node.now[name]
        return node

    def look(self, path):
        """The node of this path, or None: files may be synced after they were removed."""
        try:
            return self.find(path)
        except (KeyError, AttributeError):
            return None

    def place(self, path):
        *above, name = self.parts(path)
        node = self.root
        for one in above:
            node = node.now[one]
        return node, name

    def do(self, call, data):
        getattr(self, "do_" + call["call"])(call, data)

    def do_open(self, call, _):
        folder, name = self.place(call["path"])
        file = folder.now.setdefault(name, File())
        if isinstance(file, File):
            self.files[call["inode"]] = file
            if call["cut"]:
                file.now.clear()
                file.prints.clear()

    def do_write(self, call, data):
        file = self.files[call["inode"]]
        file.now.extend(bytes(max(0, call["at"] - len(file.now))))
        file.now[call["at"]:call["at"] + len(data)] = data
        file.prints.clear()

    def do_cut(self, call, _):
        file = self.files[call["inode"]]
        file.now.extend(bytes(max(0, call["to"] - len(file.now))))
        del file.now[call["to"]:]
        file.prints.clear()

    def do_fsync(self, call, _):
        # By its path first: a folder may have the inode of a file that was removed.
        node = self.look(call["path"])
        (node if isinstance(node, Folder) else self.files[call["inode"]]).sync()

    def do_mkdir(self, call, _):
        folder, name = self.place(call["path"])
        folder.now[name] = Folder()

    def do_remove(self, call, _):
        folder, name = self.place(call["path"])
        folder.now.pop(name)

    def do_link(self, call, _):
        folder, name = self.place(call["to"])
        folder.now[name] = self.find(call["path"])

    def do_rename(self, call, _):
        (old, old_name), (new, new_name) = self.place(call["path"]), self.place(call["to"])
        there = new.now.get(new_name)
        new.now[new_name] = old.now.pop(old_name)
        if call["exchange"]:
            old.now[old_name] = there


def read_log(path):
    """Pairs of a call and its bytes."""
    log = pathlib.Path(path).read_bytes()
    at, calls = 0, []
    while at < len(log):
        end = log.index(b"\n", at)
        call = json.loads(log[at:end])
        size = call.get("size", 0)
        assert end + 1 + size <= len(log), f"{path}: torn behind call {len(calls)}"
        calls.append((call, log[end + 1:end + 1 + size]))
        at = end + 1 + size
    return calls


def kind_of(path):
    """What a path of a run or a critic belongs to."""
    for part, kind in (("/checkpoints", "save"), ("/journals", "journal"), ("/set_aside", "restore"), ("/rollouts", "record"), ("metrics.jsonl", "metrics"),
                       ("samples.jsonl", "metrics"), ("/model", "model")):
        if part in path:
            return kind
    return "start"


VARIANTS = ("dropped", "emptied", "torn")


def print_of(node, variant):
    """Equal for what a cut leaves equal, but for the log that people read."""
    if isinstance(node, File):
        if variant not in node.prints:
            node.prints[variant] = hashlib.blake2b(node.content(variant)).digest()
        return node.prints[variant]
    names = node.synced if variant == "dropped" else node.now
    return hashlib.blake2b(b"".join(name.encode() + b"\0" + print_of(names[name], variant) for name in sorted(names) if name != "log.txt")).digest()


class Published:
    """The step of the newest checkpoint that a run may rely on: the rename that gave it its name came before the last two calls on saves. (One is the
    sync that makes it so.)"""

    def __init__(self):
        self.step = self.renamed = self.num_calls = 0

    def add(self, kind, call, path):
        if kind != "save":
            return
        self.num_calls += 1
        if self.num_calls >= 2:
            self.step = max(self.step, self.renamed)
        name = re.fullmatch(r"run/checkpoints/[^./][^/]*?-step=(\d+)[^/]*", path)
        if call == "rename" and name:
            self.renamed, self.num_calls = int(name[1]), 0


def print_points(log, folder, before):
    names, disk, seen, published = {}, Disk(folder, before), {}, Published()
    for number, (call, data) in enumerate(read_log(log), 1):
        if "inode" in call and "path" in call:
            names[call["inode"]] = call["path"]
        path = call["to"] if call["call"] in ("rename", "link") else call.get("path") or names[call["inode"]]
        path = os.path.relpath(path, disk.top)
        disk.do(call, data)
        kind = kind_of("/" + path)
        published.add(kind, call["call"], path)
        for variant in VARIANTS:
            left = print_of(disk.root, variant)
            if left != seen.get(variant):
                print(number, variant, published.step, kind, call["call"], path)
            seen[variant] = left


def build(log, folder, before, point, variant, out):
    assert variant in VARIANTS, variant
    disk = Disk(folder, before)
    for call, data in read_log(log)[:int(point)]:
        disk.do(call, data)
    write_tree(disk.root, pathlib.Path(out), variant)


if __name__ == "__main__":
    {"points": print_points, "build": build}[sys.argv[1]](*sys.argv[2:])
