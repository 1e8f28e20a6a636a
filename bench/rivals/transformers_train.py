"""One training step of transformers on the CPU, timed as `kedge bench train.step` times ours: forward, backward and AdamW of the
language-model loss on random tokens. One JSON line.

    transformers_train.py --model DIR | --shape 30m  [--dtype fp32|bf16] [--rows 16] [--length 256] [--repeats 5] [--threads N]
"""

import argparse
import json
import statistics
import time

import rival_models


def main():
    parser = argparse.ArgumentParser()
    rival_models.add_flags(parser, repeats=5)
    parser.add_argument("--rows", type=int, default=16)
    parser.add_argument("--length", type=int, default=256)
    args = parser.parse_args()

    import torch
    import transformers

    model = rival_models.make_model(args)
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
