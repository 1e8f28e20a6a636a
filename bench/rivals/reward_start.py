"""Writes a reward model to start from: a language model's folder with a randomly initialized scoring layer in place of its head, so that both
sides begin with the same numbers.

    reward_start.py MODEL_DIR OUT [SEED]
"""

import pathlib
import shutil
import sys

import rival_trainer  # noqa: F401 (sets up the environment)
import torch
import transformers


def main():
    torch.manual_seed(int(sys.argv[3]) if len(sys.argv) > 3 else 0)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(sys.argv[1], dtype=torch.float32, num_labels=1)
    model.save_pretrained(sys.argv[2])
    for file in pathlib.Path(sys.argv[1]).glob("*token*.json"):
        shutil.copy(file, sys.argv[2])


if __name__ == "__main__":
    main()
