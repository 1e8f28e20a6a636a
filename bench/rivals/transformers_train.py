"""One training step of transformers on the CPU, timed as `kedge bench train.step` times ours: forward, backward and AdamW of the
language-model loss on random tokens. One JSON line.

    transformers_train.py --model DIR | --shape 30m  [--dtype fp32|bf16] [--rows 16] [--length 256] [--repeats 5] [--threads N]
"""

import argparse
import json
import os
import statistics
import time

os.environ.setdefault("HF_HUB_OFFLINE", "1")

SHAPES = {
    "30m": dict(hidden_size=512, num_hidden_layers=8, num_attention_heads=8, num_key_value_heads=4, intermediate_size=1376,
                vocab_size=8192, tie_word_embeddings=False, max_position_embeddings=2048),
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model")
    parser.add_argument("--shape", choices=SHAPES)
    parser.add_argument("--dtype", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--rows", type=int, default=16)
    parser.add_argument("--length", type=int, default=256)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    args = parser.parse_args()

    import torch
    import transformers

    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    dtype = {"fp32": torch.float32, "bf16": torch.bfloat16}[args.dtype]
    if args.model:
        model = transformers.AutoModelForCausalLM.from_pretrained(args.model, dtype=dtype)
    else:
        config = transformers.LlamaConfig(**SHAPES[args.shape])
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=dtype, attn_implementation="sdpa")
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    ids = torch.randint(0, model.config.vocab_size, (args.rows, args.length))

    def step():
        model(input_ids=ids, labels=ids, use_cache=False).loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    step()
    seconds = []
    for _ in range(args.repeats):
        begin = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - begin)
    rates = sorted(args.rows * args.length / s for s in seconds)
    print(json.dumps(dict(rival="transformers " + transformers.__version__, model=args.model or args.shape, dtype=args.dtype, rows=args.rows,
                          length=args.length, threads=args.threads,
                          tokens_per_s=dict(median=statistics.median(rates), min=rates[0], max=rates[-1]))))


if __name__ == "__main__":
    main()
