#include "kedge/text/jinja/jinja.h"

#include "kedge/core/error.h"
#include "kedge/text/jinja/jinja_ast.h"
#include "kedge/text/jinja/jinja_eval.h"
#include "kedge/text/jinja/jinja_parser.h"

namespace kedge {
namespace {

using jinja::Evaluator;

// Runs the template and hands the evaluator over while everything it made is alive.
template <typename Use>
auto with_result(const jinja::Template& parsed, const std::string& name, const Json& context, const JinjaOptions& options, const Use& use) {
  const jinja::Meter meter({options.max_steps, options.max_bytes});
  std::deque<jinja::Namespace> spaces;
  jinja::Variables variables;
  size_t line = 1;
  try {
    for (const auto& [key, value] : context.as_object(name + ": variables"))
      variables.insert_or_assign(key, jinja::Value::from_json(value));
    jinja::add_globals(variables, spaces, options.now);
    Evaluator evaluator(parsed, variables);
    try {
      evaluator.run();
    } catch (const jinja::Fault&) {
      line = evaluator.line();
      throw;
    }
    return use(evaluator);
  } catch (const jinja::Fault& fault) {
    throw UsageError(str(name, ":", line, ": ", fault.what()));
  }
}

}  // namespace

JinjaTemplate JinjaTemplate::parse(std::string_view text, std::string_view name) {
  JinjaTemplate result;
  result.name_ = name;
  result.template_ = std::make_shared<const jinja::Template>(jinja::parse(text, name));
  return result;
}

std::string JinjaTemplate::render(const Json& context, const JinjaOptions& options) const {
  return with_result(*template_, name_, context, options, [](const Evaluator& evaluator) { return evaluator.output(); });
}

JinjaTemplate::Rendered JinjaTemplate::render_generated(const Json& context, const JinjaOptions& options) const {
  return with_result(*template_, name_, context, options, [&](const Evaluator& evaluator) {
    Rendered rendered{evaluator.output(), {}};
    for (const jinja::Generated& passage : evaluator.generated()) {
      check(rendered.text.compare(passage.begin, passage.text.size(), passage.text) == 0, name_, ":", passage.line,
            ": the text of this {% generation %} block does not appear unchanged in the output; it must not be inside a macro, a set or a "
            "filter");
      rendered.generated.push_back({passage.begin, passage.begin + passage.text.size()});
    }
    return rendered;
  });
}

bool JinjaTemplate::has_generation() const { return template_->has_generation; }

}  // namespace kedge
