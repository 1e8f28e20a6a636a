"""Generation by transformers on the CPU, timed as `kedge bench engine.decode` times ours: random prompts of one length, drawn from at
temperature 1 up to a fixed number of new tokens. One JSON line.

    transformers_generate.py --model DIR | --shape 30m|135m  [--dtype fp32|bf16] [--batch 64] [--prompt-tokens 32] [--new-tokens 128]
                             [--repeats 3] [--threads N] [--cache dynamic|static]
    transformers_generate.py --model DIR --text TEXT         one new token for a text and no timing: what a first answer takes
"""

import argparse
import json
import statistics
import time

import rival_models


def parse_arguments():
    parser = argparse.ArgumentParser()
    rival_models.add_flags(parser, repeats=3)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--prompt-tokens", type=int, default=32)
    parser.add_argument("--new-tokens", type=int, default=128)
    parser.add_argument("--cache", choices=["dynamic", "static"], default="dynamic")
    parser.add_argument("--text")
    return parser.parse_args()


def main():
    args = parse_arguments()

    import torch
    import transformers

    model = rival_models.make_model(args)
    model.eval()

    if args.text is not None:
        tokenizer = transformers.AutoTokenizer.from_pretrained(args.model)
        with torch.inference_mode():
            ids = model.generate(**tokenizer(args.text, return_tensors="pt"), max_new_tokens=1, do_sample=True)
        print(json.dumps(dict(text=tokenizer.decode(ids[0]))))
        return

    model.generation_config.eos_token_id = None  # nothing ends a row but its length
    ids = torch.randint(0, model.config.vocab_size, (args.batch, args.prompt_tokens))
    settings = dict(do_sample=True, temperature=1.0, top_k=0, top_p=1.0, pad_token_id=0, cache_implementation=args.cache)

    def run(count):
        begin = time.perf_counter()
        with torch.inference_mode():
            out = model.generate(ids, attention_mask=torch.ones_like(ids), min_new_tokens=count, max_new_tokens=count, **settings)
        assert out.shape == (args.batch, args.prompt_tokens + count)
        return time.perf_counter() - begin

    run(min(8, args.new_tokens))
    rates = sorted(args.batch * args.new_tokens / run(args.new_tokens) for _ in range(args.repeats))
    print(json.dumps(dict(rival="transformers " + transformers.__version__, model=args.model or args.shape, dtype=args.dtype, batch=args.batch,
                          prompt_tokens=args.prompt_tokens, new_tokens=args.new_tokens, cache=args.cache, threads=args.threads,
                          tokens_per_s=dict(median=statistics.median(rates), min=rates[0], max=rates[-1]))))


if __name__ == "__main__":
    main()
