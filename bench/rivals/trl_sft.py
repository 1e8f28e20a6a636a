"""TRL's SFTTrainer on the CPU, set as `kedge sft` is: loss on the answers only, rows in the file's order. One JSON line with the loss
on the validation rows before and after, and the speed.

    trl_sft.py --model DIR --train FILE [--validation FILE] [--batch 8] [--lr 1e-3] [--weight-decay 0.01] [--steps N] [--threads N] [--seed 0]

Rows are {"input", "output"}, or {"input_ids"} that are trained on throughout. Losses are given twice: as kedge defines them (the mean
over batches of a batch's mean; an incomplete last batch is left out) and over all tokens of the same rows.
"""

import argparse
import json
import statistics
import tempfile

import rival_data
import rival_trainer


def tokens_of(path, encoder):
    examples = []
    for row in rival_data.read_rows(path):
        ids, mask = (row["input_ids"], [1] * len(row["input_ids"])) if "input_ids" in row else encoder.answer(row)
        examples.append(dict(input_ids=ids, completion_mask=mask))
    return examples


def validation_losses(model, examples, batch):
    """The mean over batches, and over tokens."""
    import torch

    sums, counts = [], []
    for begin in range(0, len(examples) - batch + 1, batch):
        rows = examples[begin : begin + batch]
        width = max(len(row["input_ids"]) for row in rows)
        ids = torch.tensor([row["input_ids"] + [0] * (width - len(row["input_ids"])) for row in rows])
        mask = torch.tensor([row["completion_mask"] + [0] * (width - len(row["input_ids"])) for row in rows])[:, 1:]
        with torch.inference_mode():  # padding is on the right, where no token of a row attends to it
            losses = torch.nn.functional.cross_entropy(model(input_ids=ids).logits[:, :-1].transpose(1, 2), ids[:, 1:], reduction="none")
        sums.append((losses * mask).sum().item())
        counts.append(mask.sum().item())
    return statistics.mean(s / n for s, n in zip(sums, counts)), sum(sums) / sum(counts)


def main():
    parser = argparse.ArgumentParser()
    rival_trainer.add_flags(parser, lr=1e-3)
    parser.add_argument("--validation")
    args = parser.parse_args()

    import datasets
    import torch
    import transformers
    import trl

    torch.set_num_threads(args.threads)
    encoder = rival_data.Encoder(args.model)
    train = tokens_of(args.train, encoder)
    model = transformers.AutoModelForCausalLM.from_pretrained(args.model, dtype=torch.float32)
    result = {}

    def validate(when):
        if args.validation:
            by_batch, by_token = validation_losses(model.eval(), tokens_of(args.validation, encoder), args.batch)
            result[f"loss_{when}"], result[f"token_loss_{when}"] = by_batch, by_token

    validate("before")
    with tempfile.TemporaryDirectory() as out:
        config = trl.SFTConfig(**rival_trainer.settings(args, len(train), out), packing=False, completion_only_loss=True)
        trainer = trl.SFTTrainer(model=model, args=config, train_dataset=datasets.Dataset.from_list(train),
                                 processing_class=transformers.AutoTokenizer.from_pretrained(args.model))
        ends, losses = rival_trainer.train(trainer)
    validate("after")

    # The first step warms things up, and is not counted. Tokens are those of the rows, without padding.
    batches = [sum(len(row["input_ids"]) for row in train[at : at + args.batch]) for at in range(0, len(train) - args.batch + 1, args.batch)]
    tokens = sum(batches[step % len(batches)] for step in range(1, len(ends)))
    print(json.dumps(dict(rival="trl " + trl.__version__, model=args.model, batch=args.batch, lr=args.lr, steps=len(ends), threads=args.threads,
                          **result, train_loss_first=statistics.mean(losses[:10]), train_loss_last=statistics.mean(losses[-10:]),
                          first_step_s=ends[0], tokens=tokens, seconds=ends[-1] - ends[0], tokens_per_s=tokens / (ends[-1] - ends[0]))))


if __name__ == "__main__":
    main()
