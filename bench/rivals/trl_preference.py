"""TRL's DPOTrainer or KTOTrainer on the CPU, set as `kedge dpo` and `kedge kto` are: rows in the file's order, one batch a step. One JSON line with
every step's loss and how long the steps took.

    trl_preference.py dpo|kto --model DIR --train FILE [--batch 8] [--lr 1e-4] [--beta 0.1] [--loss sigmoid] [--precompute] [--steps N] [--threads N]

Rows are {"prompt", "chosen", "rejected"} or {"prompt", "completion", "label"}. --precompute: the reference's log-probabilities once, before the first
step, as kedge does; TRL's default is at every step.
"""

import argparse
import json
import tempfile

import rival_data
import rival_trainer


def recording(trainer_class, losses):
    """The same trainer, which notes every loss in full: its log rounds."""

    class Recording(trainer_class):
        def compute_loss(self, *arguments, **settings):
            loss = super().compute_loss(*arguments, **settings)
            losses.append(loss.item())
            return loss

    return Recording


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("algorithm", choices=["dpo", "kto"])
    rival_trainer.add_flags(parser, lr=1e-4)
    parser.add_argument("--beta", type=float, default=0.1)
    parser.add_argument("--loss", default="sigmoid")
    parser.add_argument("--precompute", action="store_true")
    args = parser.parse_args()

    import datasets
    import torch
    import transformers
    import trl

    torch.set_num_threads(args.threads)
    rows = rival_data.read_rows(args.train)
    model = transformers.AutoModelForCausalLM.from_pretrained(args.model, dtype=torch.float32)
    tokenizer = transformers.AutoTokenizer.from_pretrained(args.model)
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    losses = []
    with tempfile.TemporaryDirectory() as out:
        settings = dict(rival_trainer.settings(args, len(rows), out), beta=args.beta, precompute_ref_log_probs=args.precompute)
        if args.algorithm == "dpo":
            config, trainer_class = trl.DPOConfig(**settings, loss_type=args.loss), trl.DPOTrainer
        else:
            config, trainer_class = trl.KTOConfig(**settings), trl.KTOTrainer
        trainer = recording(trainer_class, losses)(model=model, args=config, train_dataset=datasets.Dataset.from_list(rows), processing_class=tokenizer)
        ends, _ = rival_trainer.train(trainer)
    steps = [after - before for before, after in zip(ends, ends[1:])]  # the first one warms things up
    print(json.dumps(dict(rival="trl " + trl.__version__, algorithm=args.algorithm, model=args.model, batch=args.batch, steps=len(ends), threads=args.threads,
                          precompute=args.precompute, steps_s=steps, losses=losses)))


if __name__ == "__main__":
    main()
