"""A reward as TRL's users write them: is the row's answer in the completion, and is that short?"""


def reward(prompts, completions, answer, **kwargs):
    texts = [completion if isinstance(completion, str) else completion[0]["content"] for completion in completions]
    return [None if right is None else score(text, right) for text, right in zip(texts, answer)]


def score(text, right):
    correct = 1.0 if str(right) in text else 0.0
    too_long = max(0, len(text.split()) - 100) / 100
    return correct - 0.5 * too_long
