#pragma once
// The filters that work on sequences: map, select, sort, join and similar ones. As in Python, those that give a generator do
// their work only when it is read, and can be read once.
#include "kedge/text/jinja/jinja_filters.h"

namespace kedge::jinja {

[[nodiscard]] const Filters& list_filters();

}  // namespace kedge::jinja
