"""Rows for bench/preference_speed from raschka-dpo's instruction data: pairs.jsonl, and marked.jsonl with every other response the better one.

    preference_rows.py DATA.json MODEL COUNT OUT

Left out are rows with characters that the model's tokenizer does not know: transformers drops them, tokenizer.json and kedge have a token for them.
"""

import json
import os
import sys

os.environ.setdefault("HF_HUB_OFFLINE", "1")
import rival_data
import transformers


def main():
    data, model, count, out = sys.argv[1:]
    file, auto = rival_data.Encoder(model), transformers.AutoTokenizer.from_pretrained(model)
    kept = 0
    with open(os.path.join(out, "pairs.jsonl"), "w") as pairs, open(os.path.join(out, "marked.jsonl"), "w") as marked:
        for row in json.load(open(data)):
            prompt = row["instruction"] + (" " + row["input"] if row["input"] else "") + "\n"
            texts = [prompt, prompt + row["chosen"], prompt + row["rejected"]]
            if kept == int(count) or any(file.ids(text) != auto(text, add_special_tokens=False)["input_ids"] for text in texts):
                continue
            print(json.dumps(dict(prompt=prompt, chosen=row["chosen"], rejected=row["rejected"])), file=pairs)
            print(json.dumps(dict(prompt=prompt, completion=row["rejected" if kept % 2 else "chosen"], label=kept % 2 == 0)), file=marked)
            kept += 1


if __name__ == "__main__":
    main()
