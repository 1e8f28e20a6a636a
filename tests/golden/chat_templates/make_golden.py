#!/usr/bin/env python3
"""Writes conversations.json and expected.json: some conversations, and what transformers makes of them with each template here.

    make_golden.py      (with the Python that scripts/setup --tests makes)
"""
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent.parent / "data"))
import chat_templates_peer as peer  # noqa: E402

NAMES = ["system turns", "turns prompt", "unicode", "call answer tools", "two calls", "parts turns", "reasoned prompt", "thought", "documents", "continue spaces"]


def main():
    chosen = {name: (messages, options) for name, messages, options in peer.conversations.cases() if name in NAMES}
    conversations = {name: {"messages": messages, "options": options} for name, (messages, options) in chosen.items()}
    expected = {}
    for name, template in peer.templates([HERE]):
        expected[name] = {chat: peer.by_transformers(template, *chosen[chat])[0] for chat in NAMES}  # null: transformers refuses
    for file, content in (("conversations.json", {"tokens": peer.TOKENS, "chats": conversations}), ("expected.json", expected)):
        (HERE / file).write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


main()
