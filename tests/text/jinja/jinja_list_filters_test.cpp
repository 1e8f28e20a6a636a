#include "kedge/text/jinja/jinja_list_filters.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
#include "tests/support/jinja.h"

namespace kedge {
namespace {

using testing::error_of;
using testing::rendered;

constexpr std::string_view kRows =
    R"({"rows": [{"role": "user", "n": 2}, {"role": "Bot", "n": 1}, {"role": "bot", "n": 3, "tags": ["x"]}]})";

TEST(JinjaListFilters, MapSelectAndReject) {
  EXPECT_EQ(rendered("{{ rows|map(attribute='role')|join(',') }}", kRows), "user,Bot,bot");
  EXPECT_EQ(rendered("{{ rows|map(attribute='tags.0', default='-')|list }}", kRows), "['-', '-', 'x']");
  EXPECT_EQ(rendered("{{ ['a', 'b']|map('replace', 'a', 'x')|list }}"), "['x', 'b']");
  EXPECT_EQ(rendered("{{ rows|selectattr('n', 'gt', 1)|map(attribute='n')|list }}", kRows), "[2, 3]");
  EXPECT_EQ(rendered("{{ rows|rejectattr('tags', 'defined')|list|length }}", kRows), "2");
  EXPECT_EQ(rendered("{{ [0, 1, 2]|select|list }}{{ [0, 1, 2]|reject('odd')|list }}"), "[1, 2][0, 2]");
}

TEST(JinjaListFilters, GeneratorsAreReadOnceAndOnlyWhenNeeded) {
  EXPECT_EQ(rendered("{% set g = [1, 2]|map('string') %}{{ g|join }}|{{ g|join }}"), "12|");
  EXPECT_EQ(rendered("{% set g = []|select %}{{ 'true' if g else 'false' }}"), "true");
  EXPECT_EQ(rendered("{% set g = [1]|map('nope') %}unread"), "unread");
  EXPECT_EQ(error_of([] { return rendered("{{ [1]|map('nope')|list }}"); }), "t:1: No filter named 'nope'.");
  EXPECT_EQ(error_of([] { return rendered("{{ [1]|map('string')|length }}"); }), "t:1: object of type 'generator' has no len()");
}

TEST(JinjaListFilters, SortingIgnoresCaseAndIsStable) {
  EXPECT_EQ(rendered("{{ ['b', 'A', 'a', 'B']|sort }}{{ ['b', 'A']|sort(case_sensitive=true) }}"), "['A', 'a', 'b', 'B']['A', 'b']");
  EXPECT_EQ(rendered("{{ ['b', 'A', 'a', 'B']|sort(reverse=true) }}"), "['b', 'B', 'A', 'a']");
  EXPECT_EQ(rendered("{{ rows|sort(attribute='role,n')|map(attribute='n')|list }}", kRows), "[1, 3, 2]");
  EXPECT_EQ(rendered("{{ {'b': 1, 'A': 2}|dictsort }}{{ {'b': 1, 'A': 2}|dictsort(by='value') }}"),
            "[('A', 2), ('b', 1)][('b', 1), ('A', 2)]");
  EXPECT_EQ(error_of([] { return rendered("{{ [1, 'a']|sort }}"); }), "t:1: '<' not supported between instances of 'str' and 'int'");
}

TEST(JinjaListFilters, GroupsAndUniqueItems) {
  EXPECT_EQ(rendered("{% for g in rows|groupby('role') %}{{ g.grouper }}:{{ g.list|length }} {% endfor %}", kRows), "Bot:2 user:1 ");
  EXPECT_EQ(rendered("{{ ['a', 'A', 'b']|unique|list }}{{ [1, true, 1.0, '1']|unique|list }}"), "['a', 'b'][1, '1']");
}

TEST(JinjaListFilters, SumsAndExtremes) {
  EXPECT_EQ(rendered("{{ [1, 2.5]|sum }}{{ rows|sum(attribute='n') }}{{ [[1], [2]]|sum(start=[]) }}", kRows), "3.56[1, 2]");
  EXPECT_EQ(rendered("{{ [3, 1]|min }}{{ ['b', 'A']|max }}{{ []|max }}|"), "1b|");
}

TEST(JinjaListFilters, EndsOfASequence) {
  EXPECT_EQ(rendered("{{ [1, 2]|first }}{{ [1, 2]|last }}{{ 'é世'|last }}{{ []|first }}|{{ {'a': 1, 'b': 2}|last }}"), "12世|b");
  EXPECT_EQ(rendered("{{ [1, 2]|reverse|list }}{{ 'aé'|reverse }}"), "[2, 1]éa");
  EXPECT_EQ(error_of([] { return rendered("{{ [1]|map('string')|last }}"); }), "t:1: 'generator' object is not reversible");
}

TEST(JinjaListFilters, RowsAndColumns) {
  EXPECT_EQ(rendered("{{ [1, 2, 3]|batch(2)|list }}{{ [1, 2, 3]|batch(2, 0)|list }}"), "[[1, 2], [3]][[1, 2], [3, 0]]");
  EXPECT_EQ(rendered("{{ [1, 2, 3]|slice(2)|list }}{{ [1, 2, 3]|slice(2, 0)|list }}"), "[[1, 2], [3]][[1, 2], [3, 0]]");
}

TEST(JinjaListFilters, JoinAndItems) {
  EXPECT_EQ(rendered("{{ [1, none, 'x']|join('-') }}{{ rows|join(',', attribute='n') }}", kRows), "1-None-x2,1,3");
  EXPECT_EQ(rendered("{{ {'a': 1}|items|list }}{{ nope|items|list }}"), "[('a', 1)][]");
  EXPECT_EQ(error_of([] { return rendered("{{ 1|items|list }}"); }), "t:1: Can only get item pairs from a mapping.");
}

TEST(JinjaListFilters, AllStandInOneTable) { EXPECT_EQ(jinja::list_filters().size(), 22U); }

}  // namespace
}  // namespace kedge
