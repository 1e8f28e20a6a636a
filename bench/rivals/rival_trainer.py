"""What the scripts around TRL's trainers have in common: flags, the settings both sides share, and the clock."""

import os
import time

STARTED = time.perf_counter()

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("HF_DATASETS_DISABLE_PROGRESS_BARS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


def add_flags(parser, lr):
    parser.add_argument("--model", required=True)
    parser.add_argument("--train", required=True)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--lr", type=float, default=lr)
    parser.add_argument("--weight-decay", type=float, default=0.01)
    parser.add_argument("--steps", type=int, help="one pass over the training file where it is not given")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))


def settings(args, num_rows, out):
    """Of kedge's trainers, in transformers' words: fp32, AdamW, constant rate, norm clipped to 1, rows in the file's order. transformers
    keeps norms and biases out of the decay, as kedge does."""
    return dict(output_dir=out, per_device_train_batch_size=args.batch, max_steps=args.steps or num_rows // args.batch,
                train_sampling_strategy="sequential", dataloader_drop_last=True, learning_rate=args.lr, lr_scheduler_type="constant",
                warmup_steps=0, optim="adamw_torch_fused", adam_beta1=0.9, adam_beta2=0.98, adam_epsilon=1e-8,
                weight_decay=args.weight_decay, max_grad_norm=1.0, bf16=False, gradient_checkpointing=False, use_cpu=True, seed=args.seed,
                max_length=None, logging_steps=1, save_strategy="no", report_to="none", disable_tqdm=True)


def train(trainer):
    """Trains without printing. Gives when each step ended, in seconds from the start of the program, and each step's loss."""
    import transformers

    ends, losses = [], []

    class Clock(transformers.TrainerCallback):
        def on_step_end(self, *_, **__):
            ends.append(time.perf_counter() - STARTED)

        def on_log(self, *_, logs=None, **__):
            if "loss" in logs:
                losses.append(float(logs["loss"]))

    trainer.remove_callback(transformers.PrinterCallback)
    trainer.add_callback(Clock())
    trainer.train()
    return ends, losses
