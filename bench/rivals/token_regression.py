"""How far counting tokens gets: logistic regression on how often each token occurs in the better text minus in the worse, by the model's own
tokenizer. One JSON line as trl_rm.py prints it.

    token_regression.py --model DIR --train FILE --test FILE

Rows are {"prompt", "chosen", "rejected"}; each counts once however often the training file repeats it. The penalty is the one of nine
that does best in five-fold cross-validation on the training rows.
"""

import argparse
import json
import statistics

import rival_data


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--train", required=True)
    parser.add_argument("--test", required=True)
    args = parser.parse_args()

    import numpy
    import sklearn
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV

    encoder = rival_data.Encoder(args.model)
    size = encoder.tokenizer.get_vocab_size()

    def differences(rows):
        pairs = [encoder.pair(row) for row in rows]
        return numpy.array([numpy.bincount(c, minlength=size) - numpy.bincount(r, minlength=size) for c, r in pairs], dtype=float)

    # Without an intercept the loss of a pair is the same when its sides change places; every second pair does, to make two classes.
    train = differences({json.dumps(row): row for row in rival_data.read_rows(args.train)}.values())
    sides = numpy.where(numpy.arange(len(train)) % 2, -1, 1)
    search = GridSearchCV(LogisticRegression(fit_intercept=False, max_iter=5000), dict(C=numpy.logspace(-3, 1, 9)), cv=5)
    search.fit(train * sides[:, None], sides)
    correct = [int(score > 0) for score in search.decision_function(differences(rival_data.read_rows(args.test)))]
    print(json.dumps(dict(rival="scikit-learn " + sklearn.__version__, model=args.model, C=search.best_params_["C"],
                          accuracy=statistics.mean(correct), correct=correct)))


if __name__ == "__main__":
    main()
