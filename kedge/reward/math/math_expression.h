#pragma once
// The grammar of final answers: a tree of numbers, symbols, operations, lists, intervals, sets, relations, matrices and texts. Knows no
// values. Depth and size are bounded, so that no text takes long or ends the program.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kedge/reward/math/rational.h"

namespace kedge {

struct MathNode {
  enum class Kind {
    number,
    symbol,      // x, \alpha, x_1; pi, e, i and infty are symbols with a value
    add,         // of all parts
    multiply,    // of all parts
    divide,      // two parts
    power,       // two parts
    negate,      // one part
    plus_minus,  // one part: stands for itself and for its negative; name "-" if the other way round
    function,    // name: sin, sqrt, root (degree, of), log (of, base), binom, factorial, degree, ...
    percent,     // one part
    text,        // in lower case, words apart by one blank
    list,        // without brackets: 1, 2
    sequence,    // name: the two brackets, "()" "[)": a tuple or an interval
    set,
    join,      // name: cup, cap, setminus
    relation,  // parts, with name holding the relations between them: "=", "<<", "le" as 'l', "ge" as 'g', "ne" as '!', "in" as 'e'
    matrix,    // parts are rows, each a sequence
  };
  Kind kind = Kind::number;
  std::string name = {};
  std::vector<MathNode> parts = {};
  // Of a number:
  std::optional<Rational> exact = {};
  double approximate = 0;
  bool has_point = false;  // written with a decimal point, so it may be rounded
};

// The answer, or nothing if it cannot be read: empty, too long, nested too deeply, or neither maths nor a short text.
[[nodiscard]] std::optional<MathNode> parse_math(std::string_view text);

}  // namespace kedge
