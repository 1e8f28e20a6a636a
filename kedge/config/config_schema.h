#pragma once
// What keys a configuration has: each struct lists its fields once, and loading, overrides, help, checks and the dump all
// read that list. A struct takes part by a member
//
//   void fields(auto&& field) {
//     field("max_steps", max_steps, "cap on steps; -1: none", at_least(-1));
//     field("optim", optim, "the optimizer");                       // a struct: a section
//     field.alias("host", "reward_model.ip");                       // another name for a key of this section
//     field.ignored("bucket_cap_mb", "there are no buckets here");  // accepted with a warning
//     field.refused("sequence_parallel", "not supported", {"false"});  // an error unless one of these values
//   }
//
// Types: bool, int64_t, double, std::string, ByteSize, Json (anything), enums with `enum_names`, sections, and of these
// std::optional (null), std::vector (list) and std::map<std::string, ...>.
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "kedge/config/config_node.h"

namespace kedge {

// A number of bytes, written 4096, "512MiB", "1.5GiB" or "2GB".
struct ByteSize {
  int64_t bytes = 0;
  friend bool operator==(const ByteSize&, const ByteSize&) = default;
};

// Further properties of a field. Bounds apply to a number, and for every number of a list.
struct FieldRules {
  std::optional<double> min, max;
  bool min_excluded = false, max_excluded = false;
  bool finite = false;
  std::string unit;     // "tokens", "s"
  std::string follows;  // the default is this expression, "${.val_check_interval}"; of a section: those of its keys are the keys there
  std::vector<std::pair<std::string, std::string>> null_means;  // of a section: null sets these keys of it to these values
  std::string older;  // what settings mean that were written before this key existed, if that is not its default
  bool required = false;
};
using FieldRule = std::function<void(FieldRules&)>;
[[nodiscard]] FieldRule at_least(double value);
[[nodiscard]] FieldRule at_most(double value);
[[nodiscard]] FieldRule above(double value);
[[nodiscard]] FieldRule below(double value);
[[nodiscard]] FieldRule finite();
[[nodiscard]] FieldRule unit(std::string name);
[[nodiscard]] FieldRule follows(std::string expression);
[[nodiscard]] FieldRule required();
// The section may be null, which sets this key of it to this value; for several keys given several times.
[[nodiscard]] FieldRule null_means(std::string key, std::string value);
// Settings that were written before this key existed mean this value.
[[nodiscard]] FieldRule formerly(std::string value);

// What went wrong while a tree was bound to structs; everything is reported at once.
struct BindReport {
  std::vector<std::string> errors, warnings;
  std::vector<std::string> known_keys;  // for the nearest names
};

struct Section;

struct Field {
  std::string name, help;
  std::string type;  // for people: "integer", "list of numbers", "min | max"
  FieldRules rules;
  bool nullable = false;
  std::function<ConfigNode()> get;
  std::function<void(const ConfigNode&, const std::string& path, BindReport&)> set;
  std::function<Section()> section;  // of a section or an optional one: its own fields; else empty
};

struct Section {
  struct Note {
    std::string name, why;
    std::vector<std::string> accepted;  // refused and converted keys: values that are harmless
  };
  std::vector<Field> fields;
  PathAliases aliases;  // relative to this section
  std::vector<Note> ignored, refused, converted;
};

// One name of an enum: {"min", Mode::min}. An enum takes part with a function next to it:
//   constexpr auto enum_names(Mode) { return std::array<EnumName<Mode>, 2>{{{"min", Mode::min}, {"max", Mode::max}}}; }
// Words of other systems for the same values may be listed by a function other_names(Mode): they are read and not shown.
template <typename E>
struct EnumName {
  std::string_view name;
  E value;
};

class SectionBuilder;
template <typename T>
concept HasFields = requires(T& value, SectionBuilder& builder) {
  value.fields(builder);
};
template <typename T>
concept NamedEnum = std::is_enum_v<T> && requires(T value) {
  enum_names(value);
};

template <typename T>
concept OtherwiseNamed = requires(T value) {
  other_names(value);
};

template <HasFields T>
Section describe(T& object);
inline constexpr const char* kMissing = "???";  // Hydra's marker for "must be supplied"

// Reads the tree into the fields; every unknown key and every value that does not fit is reported.
void bind_section(const Section& section, const ConfigNode& node, const std::string& path, BindReport& report);
// The fields' values now. Binding it again changes nothing.
[[nodiscard]] ConfigNode section_node(const Section& section);
// The same for a fresh struct, with `follows` expressions and ??? for what is required. A section that is null by default
// is filled in where `user` sets something inside it.
[[nodiscard]] ConfigNode defaults_node(const Section& section, const ConfigNode* user = nullptr);
// The field at a dotted path, or the free-form field that holds it.
[[nodiscard]] std::optional<Field> find_field(const Section& section, std::string_view path);
// Reports "ppo.yaml:3: PATH: expected an integer, found abc".
void report_wanted(const ConfigNode& found, const std::string& path, std::string_view wanted, BindReport& report);
// "at least 0 and below 1"; empty without bounds.
[[nodiscard]] std::string bounds_text(const FieldRules& rules);

// The scalar types: how each is read (false: the node is not such a value), shown, and named.
bool read_scalar(const ConfigNode& node, bool& value);
bool read_scalar(const ConfigNode& node, int64_t& value);
bool read_scalar(const ConfigNode& node, double& value);
bool read_scalar(const ConfigNode& node, std::string& value);
bool read_scalar(const ConfigNode& node, ByteSize& value);
bool read_scalar(const ConfigNode& node, Json& value);
[[nodiscard]] ConfigNode scalar_node(bool value);
[[nodiscard]] ConfigNode scalar_node(int64_t value);
[[nodiscard]] ConfigNode scalar_node(double value);
[[nodiscard]] ConfigNode scalar_node(const std::string& value);
[[nodiscard]] ConfigNode scalar_node(ByteSize value);
[[nodiscard]] ConfigNode scalar_node(const Json& value);
struct ScalarNames {
  std::string_view type;    // in tables: "integer"
  std::string_view wanted;  // in errors: "an integer"
};
[[nodiscard]] ScalarNames scalar_names(bool);
[[nodiscard]] ScalarNames scalar_names(int64_t);
[[nodiscard]] ScalarNames scalar_names(double);
[[nodiscard]] ScalarNames scalar_names(const std::string&);
[[nodiscard]] ScalarNames scalar_names(ByteSize);
[[nodiscard]] ScalarNames scalar_names(const Json&);
template <typename T>
concept ConfigScalar = std::is_same_v<T, bool> || std::is_same_v<T, int64_t> || std::is_same_v<T, double> ||
    std::is_same_v<T, std::string> || std::is_same_v<T, ByteSize> || std::is_same_v<T, Json>;

// How one type is bound, shown and named.
template <typename T>
struct ConfigType;

template <ConfigScalar T>
struct ConfigType<T> {
  static std::string name() { return std::string(scalar_names(T{}).type); }
  static void bind(T& value, const ConfigNode& node, const std::string& path, BindReport& report) {
    if (!read_scalar(node, value)) report_wanted(node, path, scalar_names(T{}).wanted, report);
  }
  static ConfigNode node(const T& value) { return scalar_node(value); }
};

template <NamedEnum T>
struct ConfigType<T> {
  static std::string name() {
    std::string names;
    for (const auto& entry : enum_names(T{})) names += (names.empty() ? "" : " | ") + std::string(entry.name);
    return names;
  }
  static void bind(T& value, const ConfigNode& node, const std::string& path, BindReport& report) {
    if (is_one_of(enum_names(T{}), node, value)) return;
    if constexpr (OtherwiseNamed<T>)
      if (is_one_of(other_names(T{}), node, value)) return;
    report_wanted(node, path, name(), report);
  }
  static ConfigNode node(const T& value) {
    for (const auto& entry : enum_names(T{}))
      if (entry.value == value) return ConfigNode::scalar(std::string(entry.name), true);
    return ConfigNode::null();
  }

 private:
  static bool is_one_of(const auto& names, const ConfigNode& node, T& value) {
    for (const auto& entry : names)
      if (node.kind == ConfigNode::Kind::scalar && node.text == entry.name) {
        value = entry.value;
        return true;
      }
    return false;
  }
};

template <HasFields T>
struct ConfigType<T> {
  static std::string name() { return "section"; }
  static void bind(T& value, const ConfigNode& node, const std::string& path, BindReport& report) {
    bind_section(describe(value), node, path, report);
  }
  static ConfigNode node(const T& value) {
    T copy = value;  // describe() hands out setters, so it needs a mutable object
    return section_node(describe(copy));
  }
};

template <typename T>
struct ConfigType<std::optional<T>> {
  static std::string name() { return ConfigType<T>::name() + " or null"; }
  static void bind(std::optional<T>& value, const ConfigNode& node, const std::string& path, BindReport& report) {
    if (node.is_null()) {
      value.reset();
    } else {
      ConfigType<T>::bind(value.emplace(), node, path, report);
    }
  }
  static ConfigNode node(const std::optional<T>& value) { return value ? ConfigType<T>::node(*value) : ConfigNode::null(); }
};

template <typename T>
struct ConfigType<std::vector<T>> {
  static std::string name() { return "list of " + ConfigType<T>::name(); }
  static void bind(std::vector<T>& value, const ConfigNode& node, const std::string& path, BindReport& report) {
    if (node.kind != ConfigNode::Kind::list) return report_wanted(node, path, "a list", report);
    value.clear();
    for (size_t i = 0; i < node.items.size(); ++i) {
      T item{};
      ConfigType<T>::bind(item, node.items[i], join_path(path, std::to_string(i)), report);
      value.push_back(std::move(item));
    }
  }
  static ConfigNode node(const std::vector<T>& value) {
    std::vector<ConfigNode> items;
    for (const T& item : value) items.push_back(ConfigType<T>::node(item));
    return ConfigNode::list(std::move(items));
  }
};

template <typename T>
struct ConfigType<std::map<std::string, T>> {
  static std::string name() { return "map of " + ConfigType<T>::name(); }
  static void bind(std::map<std::string, T>& value, const ConfigNode& node, const std::string& path, BindReport& report) {
    if (!node.is_map()) return report_wanted(node, path, "a map", report);
    value.clear();
    for (const auto& [key, member] : node.members) ConfigType<T>::bind(value[key], member, join_path(path, key), report);
  }
  static ConfigNode node(const std::map<std::string, T>& value) {
    ConfigNode map = ConfigNode::map();
    for (const auto& [key, member] : value) map.members.emplace_back(key, ConfigType<T>::node(member));
    return map;
  }
};

// What `fields()` is called with.
class SectionBuilder {
 public:
  template <typename T, typename... Rules>
  void operator()(std::string_view name, T& member, std::string_view help, const Rules&... rules) {
    Field& field = add(name, member, help);
    (FieldRule(rules)(field.rules), ...);
  }

  // Paths are relative to this section, dotted where they reach deeper.
  void alias(std::string name, std::string of) { section_.aliases.emplace_back(std::move(name), std::move(of)); }
  // A key that is read, with other values than these, in another way than in NeMo-Aligner.
  void converted(std::string name, std::string why, std::vector<std::string> accepted = {}) {
    section_.converted.push_back({std::move(name), std::move(why), std::move(accepted)});
  }
  void ignored(std::string name, std::string why) { section_.ignored.push_back({std::move(name), std::move(why), {}}); }
  void refused(std::string name, std::string why, std::vector<std::string> accepted = {}) {
    section_.refused.push_back({std::move(name), std::move(why), std::move(accepted)});
  }
  // Several keys for one reason.
  void ignored(std::initializer_list<const char*> names, const std::string& why) {
    for (const char* name : names) ignored(name, why);
  }
  void refused(std::initializer_list<const char*> names, const std::string& why, const std::vector<std::string>& accepted = {}) {
    for (const char* name : names) refused(name, why, accepted);
  }

  Section take();

 private:
  // Once for every type, whatever the rules: this is most of a configuration's compilation.
  template <typename T>
  [[gnu::cold, gnu::noinline]] Field& add(std::string_view name, T& member, std::string_view help) {
    Field& field = section_.fields.emplace_back();
    field.name = name;
    field.help = help;
    field.type = ConfigType<T>::name();
    field.get = [&member] { return ConfigType<T>::node(member); };
    field.set = [&member](const ConfigNode& node, const std::string& path, BindReport& report) {
      ConfigType<T>::bind(member, node, path, report);
    };
    add_section(field, member);
    return field;
  }

  template <typename T>
  static void add_section(Field& field, T& member) {
    if constexpr (HasFields<T>) field.section = [&member] { return describe(member); };
  }
  template <typename T>
  static void add_section(Field& field, std::optional<T>& member) {
    field.nullable = true;
    if constexpr (HasFields<T>) {
      field.section = [&member] {
        static T example;  // a null section still has keys to list
        return describe(member ? *member : example);
      };
    }
  }

  Section section_;
};

// `object` must outlive the section. Of a large configuration it is compiled once: algo/config_sections.cpp.
template <HasFields T>
Section describe(T& object) {
  SectionBuilder builder;
  object.fields(builder);
  return builder.take();
}

}  // namespace kedge
