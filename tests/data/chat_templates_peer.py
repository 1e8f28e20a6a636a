#!/usr/bin/env python3
"""Chat templates rendered by transformers and by ours: the same text and the same generated passages, or both refuse.

    chat_templates_peer.py RENDER_LINES TEMPLATE_OR_FOLDER ...

A template is a .jinja file or a tokenizer_config.json that holds one; of a folder, every .jinja file in it. One that is not there is
left out with a word.
"""
import contextlib
import datetime
import io
import json
import pathlib
import subprocess
import sys
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "golden" / "chat_templates"))
import conversations  # noqa: E402
import transformers.utils.chat_template_utils as peer  # noqa: E402

TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}


class Clock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls(2024, 7, 26, 9, 5, 7)


def by_transformers(template, messages, options):
    generates = "generation" in template and "continue" not in options
    try:
        with unittest.mock.patch.object(peer, "datetime", Clock), contextlib.redirect_stderr(io.StringIO()):
            rendered, indices = peer.render_jinja_template(
                conversations=[messages],
                tools=options.get("tools"),
                documents=options.get("documents"),
                chat_template=template,
                return_assistant_tokens_mask=generates,
                continue_final_message=options.get("continue", False),
                add_generation_prompt=options.get("add_generation_prompt", False),
                **{**TOKENS, **options.get("variables", {})},
            )
    except Exception as error:  # whatever Python raises counts as refusing
        return None, None, f"{type(error).__name__}: {error}"
    text = rendered[0]
    spans = [[len(text[:at].encode()) for at in pair] for pair in indices[0]] if indices else None
    return text, spans, None


def templates(paths):
    for path in map(pathlib.Path, paths):
        if not path.exists():
            print("left out:", path, "is not there")
        elif path.is_dir():
            for file in sorted(path.rglob("*.jinja")):
                yield str(file.relative_to(path)), file.read_text(encoding="utf-8")
        elif path.suffix == ".json":
            yield str(path), json.loads(path.read_text(encoding="utf-8"))["chat_template"]
        else:
            yield str(path), path.read_text(encoding="utf-8")


def main():
    program, paths = sys.argv[1], sys.argv[2:]
    cases = [(name, text, *case) for name, text in templates(paths) for case in conversations.cases()]
    lines = "".join(
        json.dumps({"template": text, "messages": messages, "tokens": TOKENS, "options": options}) + "\n" for _, text, _, messages, options in cases
    )
    answers = subprocess.run([program], input=lines, capture_output=True, text=True, check=True).stdout.split("\n")[:-1]
    assert len(answers) == len(cases), f"{len(cases)} cases, {len(answers)} answers"
    wrong = texts = 0
    silent = {name for name, *_ in cases}  # templates that have given no text so far
    for (name, template, chat, messages, options), answer in zip(cases, answers):
        ours = json.loads(answer)
        text, spans, error = by_transformers(template, messages, options)
        if text is not None:
            texts += 1
            silent.discard(name)
        if ours.get("text") != text or (text is not None and "generated" in ours and ours["generated"] != spans):
            wrong += 1
            if wrong <= 50:
                print(f"{name}, {chat}\n  transformers: {text!r} {spans or ''} {error or ''}\n  ours:         {ours.get('text')!r} {ours.get('generated', '')} {ours.get('error', '')}")
    print(f"{len({name for name, *_ in cases})} templates, {len(cases)} renderings, {texts} give text, {wrong} differ")
    if silent:
        print("no text at all from", ", ".join(sorted(silent)))
    return 1 if wrong or silent or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
