"""TRL's RewardTrainer on the CPU, set as `kedge rm` is: pairs in the file's order, the last token's hidden state into one linear layer. One
JSON line with the accuracy on the test pairs and, for each of them, whether the better text has the higher reward.

    trl_rm.py --model DIR --train FILE --test FILE [--batch 8] [--lr 1e-3] [--weight-decay 0.01] [--steps N] [--threads N] [--seed 0]

Rows are {"prompt", "chosen", "rejected"}. The seed draws the layer's first weights.
"""

import argparse
import json
import statistics
import tempfile

import rival_data
import rival_trainer


def rewards(model, rows):
    """Of each row by itself, so that no padding is needed."""
    import torch

    with torch.inference_mode():
        return [model(input_ids=torch.tensor([ids])).logits.item() for ids in rows]


def main():
    parser = argparse.ArgumentParser()
    rival_trainer.add_flags(parser, lr=1e-3)
    parser.add_argument("--test", required=True)
    args = parser.parse_args()

    import datasets
    import torch
    import transformers
    import trl

    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    encoder = rival_data.Encoder(args.model)
    train, test = ([encoder.pair(row) for row in rival_data.read_rows(path)] for path in (args.train, args.test))
    model = transformers.AutoModelForSequenceClassification.from_pretrained(args.model, dtype=torch.float32, num_labels=1)
    with tempfile.TemporaryDirectory() as out:
        config = trl.RewardConfig(**rival_trainer.settings(args, len(train), out))
        trainer = trl.RewardTrainer(model=model, args=config, processing_class=transformers.AutoTokenizer.from_pretrained(args.model),
                                    train_dataset=datasets.Dataset.from_list([dict(chosen_ids=c, rejected_ids=r) for c, r in train]))
        ends, losses = rival_trainer.train(trainer)

    model.eval()
    correct = [int(better > worse) for better, worse in zip(*(rewards(model, side) for side in zip(*test)))]
    print(json.dumps(dict(rival="trl " + trl.__version__, model=args.model, batch=args.batch, lr=args.lr, steps=len(ends), threads=args.threads,
                          train_loss_first=statistics.mean(losses[:10]), train_loss_last=statistics.mean(losses[-10:]),
                          seconds=round(ends[-1] - ends[0], 2), accuracy=statistics.mean(correct), correct=correct)))


if __name__ == "__main__":
    main()
