// Every fault of a request that shows before a model sees it: its status, and a text that says where, what was wanted and what was found.
#include <gtest/gtest.h>

#include "kedge/net/kserve.h"
#include "kedge/net/signature.h"

namespace kedge {
namespace {

struct Row {
  std::string body;
  int status;
  std::string text;  // all of it, or its beginning where it ends in "..."
  std::optional<int64_t> header_length = {};
  std::string behind = {};  // bytes after the body; without a header length it is the body's
};

// "200", or the status and text of the error that the request ends in.
template <typename Call>
std::pair<int, std::string> answer_of(Call&& call) {
  try {
    call();
  } catch (const RequestError& error) {
    return {error.status(), error.what()};
  }
  return {200, ""};
}

void expect_answer(const Row& row, const std::pair<int, std::string>& answer) {
  EXPECT_EQ(answer.first, row.status) << row.body << row.behind;
  if (row.text.ends_with("..."))
    EXPECT_EQ(answer.second.substr(0, row.text.size() - 3) + "...", row.text) << row.body;
  else
    EXPECT_EQ(answer.second, row.text) << row.body;
}

void expect_answers(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    const auto length = row.behind.empty() ? row.header_length : row.header_length.value_or(static_cast<int64_t>(row.body.size()));
    expect_answer(row, answer_of([&] { static_cast<void>(parse_request(row.body + row.behind, length)); }));
  }
}

std::string with_input(const std::string& input) { return R"({"inputs":[)" + input + "]}"; }

TEST(KserveErrors, MalformedJson) {
  expect_answers({
      {"", 400, "request:1:1: not valid JSON: ..."},
      {"{", 400, "request:1:2: not valid JSON: ..."},
      {R"({"inputs":[]}})", 400, "request:1:14: not valid JSON: ..."},
      {R"({"inputs":[],"inputs":[]})", 400, R"(request:1: not valid JSON: key "inputs" occurs twice in one object)"},
      {"{\"id\":\"\xff\"}", 400, "request:1:8: not valid JSON: ..."},
      {with_input(R"({"name":"x","shape":[1],"datatype":"FP32","data":[NaN]})"), 400, "request:1:62: not valid JSON: ..."},
      {with_input(R"({"name":"x","shape":[1],"datatype":"FP64","data":[1e999]})"), 400, "request:1:66: not valid JSON: ..."},
      {std::string(300, '['), 400, "request:1: not valid JSON: nested deeper than 256 levels"},
  });
}

TEST(KserveErrors, MissingMembersAndMembersOfTheWrongKind) {
  expect_answers({
      {"3", 400, "request: expected an object, found 3"},
      {"{}", 400, "request: no \"inputs\" field"},
      {R"({"inputs":{}})", 400, "inputs: expected a list, found {}"},
      {R"({"inputs":[],"id":7})", 400, "id: expected a string, found 7"},
      {R"({"inputs":[],"parameters":[]})", 400, "request: parameters: expected an object, found []"},
      {R"({"inputs":[],"parameters":{"a":null}})", 400, "request: parameter \"a\": expected a string, a number, true or false, found null"},
      {R"({"inputs":[],"parameters":{"binary_data_output":1}})", 400, "request: binary_data_output: expected true or false, found 1"},
      {R"({"inputs":[],"parameters":{"triton_x":1}})", 400, "request: parameter \"triton_x\": names that start with triton_ are reserved"},
      {with_input("3"), 400, "input 0: expected an object, found 3"},
      {with_input("{}"), 400, "input 0: no \"name\" field"},
      {with_input(R"({"name":1})"), 400, "input 0: name: expected a string, found 1"},
      {with_input(R"({"name":""})"), 400, "input 0: the name is empty"},
      {with_input(R"({"name":"x"})"), 400, "input \"x\": no \"shape\" field"},
      {with_input(R"({"name":"x","shape":3})"), 400, "input \"x\": shape: expected a list, found 3"},
      {with_input(R"({"name":"x","shape":["3"]})"), 400, "input \"x\": shape: expected an integer, found \"3\""},
      {with_input(R"({"name":"x","shape":[1.5]})"), 400, "input \"x\": shape: expected an integer, found 1.5"},
      {with_input(R"({"name":"x","shape":[2,-1]})"), 400, "input \"x\": shape: expected sizes of at least 0, found -1"},
      {with_input(R"({"name":"x","shape":[9223372036854775808]})"), 400,
       "input \"x\": shape: expected an integer, found 9223372036854775808.0"},
      {with_input(R"({"name":"x","shape":[1]})"), 400, "input \"x\": no \"datatype\" field"},
      {with_input(R"({"name":"x","shape":[1],"datatype":"int64"})"), 400, "input \"x\": no datatype \"int64\""},
      {R"({"inputs":[],"outputs":{}})", 400, "outputs: expected a list, found {}"},
      {R"({"inputs":[],"outputs":[{}]})", 400, "output 0: no \"name\" field"},
      {R"({"inputs":[],"outputs":[{"name":"y","parameters":{"binary_data":"yes"}}]})", 400,
       "output \"y\": binary_data: expected true or false, found \"yes\""},
      {R"({"inputs":[],"outputs":[{"name":"y"},{"name":"y"}]})", 400, "output \"y\" occurs twice"},
  });
}

TEST(KserveErrors, DataGivenTwiceOrNotAtAllOrElsewhere) {
  const std::string start = R"({"name":"x","shape":[1],"datatype":"INT64")";
  const std::string wants_one = "input \"x\": expected exactly one of data, binary_data_size and shared_memory_region, found ";
  expect_answers({
      {with_input(start + "}"), 400, wants_one + "0"},
      {with_input(start + R"(,"data":[1],"parameters":{"binary_data_size":8}})"), 400, wants_one + "2", {}, "12345678"},
      {with_input(start + R"(,"data":[1],"parameters":{"shared_memory_region":"r"}})"), 400, wants_one + "2"},
      {with_input(start + R"(,"parameters":{"shared_memory_region":"r","shared_memory_byte_size":8}})"), 501,
       "input \"x\": shared memory is not supported; send the data in the body"},
      {R"({"inputs":[],"outputs":[{"name":"y","parameters":{"shared_memory_region":"r"}}]})", 501,
       "output \"y\": shared_memory_region is not supported"},
      {R"({"inputs":[],"outputs":[{"name":"y","parameters":{"classification":3}}]})", 501, "output \"y\": classification is not supported"},
      {with_input(start + R"(,"data":[1]},)" + start + R"(,"data":[2]})"), 400, "input \"x\" occurs twice"},
  });
}

TEST(KserveErrors, LengthsThatDoNotAgree) {
  const auto sized = [](int64_t size, const std::string& shape = "[1]", const std::string& type = "INT64") {
    return with_input(
        str(R"({"name":"x","shape":)", shape, R"(,"datatype":")", type, R"(","parameters":{"binary_data_size":)", size, "}}"));
  };
  const std::string huge = "[4611686018427387904,4]";
  using namespace std::string_literals;
  expect_answers({
      {"{}", 400, "Inference-Header-Content-Length is 3, the body has 2 bytes", 3},
      {"{}", 400, "Inference-Header-Content-Length is -1, the body has 2 bytes", -1},
      {sized(8), 400,
       "input \"x\": binary_data_size is 8, the body has 0 bytes left; without Inference-Header-Content-Length all of it is JSON"},
      {sized(8),
       400,
       "input \"x\": binary_data_size is 8, the body has 7 bytes left; without Inference-Header-Content-Length all of it is JSON",
       {},
       "1234567"},
      {sized(8), 400, "the body has 1 bytes more than its inputs", {}, "123456789"},
      {sized(9), 400, "tensor \"x\": INT64 of shape [1] needs 8 bytes, found 9", {}, "123456789"},
      {sized(-1), 400, "input \"x\": binary_data_size is -1", {}, "1"},
      {sized(0, huge), 400, "the shape [4611686018427387904,4] has more elements than can be counted"},
      {sized(0, "[2305843009213693952]"), 400, "tensor \"x\": the shape [2305843009213693952] has more bytes than can be counted"},
      {sized(5, "[2]", "BYTES"), 400, "tensor \"x\": its 5 bytes end within text 1 of 2", {}, "\1\0\0\0a"s},
      {sized(6, "[1]", "BYTES"), 400, "tensor \"x\": 1 bytes are left over after 1 texts", {}, "\1\0\0\0ab"s},
      {sized(1, "[1]", "BOOL"), 400, "tensor \"x\": BOOL allows only bytes 0 and 1", {}, "\2"},
      {with_input(R"({"name":"x","shape":[4611686018427387904,4],"datatype":"INT64","data":[1]})"), 400,
       "the shape [4611686018427387904,4] has more elements than can be counted"},
      {with_input(R"({"name":"x","shape":[1],"datatype":"FP16","data":[1]})"), 400,
       "input \"x\": FP16 cannot be sent as JSON; send it as binary data"},
  });
}

TEST(KserveErrors, JsonThatIsTooLong) {
  const std::string body = R"({"inputs":[]})" + std::string((size_t{64} << 20U) - 12, ' ');
  expect_answer({"64 MiB and a byte", 400, "the request has 67108865 bytes of JSON, more than 67108864; send tensors as binary data"},
                answer_of([&] { static_cast<void>(parse_request(body, {})); }));
  // What follows the JSON does not count.
  EXPECT_EQ(answer_of([&] { static_cast<void>(parse_request(body, 13)); }).second, "the body has 67108852 bytes more than its inputs");
  EXPECT_TRUE(parse_request(std::string_view(body).substr(0, size_t{64} << 20U), {}).inputs.empty());
}

// Requests that are well-formed but not what the model takes.
TEST(KserveErrors, RequestsThatAreNotAsDeclared) {
  const ModelSignature reward{.name = "reward_model",
                              .max_batch_size = 4,
                              .inputs = {{"sentences", WireType::bytes, {-1}, true},
                                         {"tokens", WireType::int64, {-1}, true},
                                         {"sequence_lengths", WireType::int64, {1}, true}},
                              .outputs = {{"rewards", WireType::fp32, {1}}}};
  const ModelSignature train{.name = "critic_train",
                             .inputs = {{"tokens", WireType::int64, {-1, -1}}, {"mask", WireType::fp32, {-1, -1}}},
                             .outputs = {{"loss_mean", WireType::fp32, {1}}}};
  const auto tensor = [](std::string name, std::vector<int64_t> shape, WireType type = WireType::int64) {
    WireTensor made{.name = std::move(name), .type = type, .shape = std::move(shape)};
    made.data.resize(static_cast<size_t>(num_elements(made.shape) * bytes_of(type)));
    return made;
  };
  struct Case {
    const ModelSignature& model;
    InferRequest request;
    std::string text;
  };
  const std::vector<Case> cases = {
      {reward, {.inputs = {}}, "model reward_model: expected inputs, found none; it takes sentences, tokens, sequence_lengths"},
      {reward,
       {.inputs = {tensor("token", {1, 3})}},
       "model reward_model: no input \"token\"; it takes sentences, tokens, sequence_lengths"},
      {reward, {.inputs = {tensor("tokens", {1, 3}), tensor("tokens", {1, 3})}}, "model reward_model: input \"tokens\" occurs twice"},
      {reward,
       {.inputs = {tensor("tokens", {1, 3}, WireType::int32)}},
       "model reward_model: input \"tokens\": expected INT64, found INT32"},
      {reward,
       {.inputs = {tensor("tokens", {3})}},
       "model reward_model: input \"tokens\": expected the shape [-1,-1] with the rows first, -1 being any size, found [3]"},
      {reward,
       {.inputs = {tensor("tokens", {1, 3, 1})}},
       "model reward_model: input \"tokens\": expected the shape [-1,-1] with the rows first, -1 being any size, found [1,3,1]"},
      {reward,
       {.inputs = {tensor("sequence_lengths", {1, 2})}},
       "model reward_model: input \"sequence_lengths\": expected the shape [-1,1] with the rows first, -1 being any size, found [1,2]"},
      {reward,
       {.inputs = {tensor("tokens", {2, 3}), tensor("sequence_lengths", {1, 1})}},
       "model reward_model: inputs of one request need the same number of rows, found 2 in \"tokens\" and 1 in \"sequence_lengths\""},
      {reward, {.inputs = {tensor("tokens", {0, 3})}}, "model reward_model: expected 1 row or more, found 0 in \"tokens\""},
      {reward, {.inputs = {tensor("tokens", {5, 3})}}, "model reward_model: expected 4 rows at most, found 5 in \"tokens\""},
      {reward,
       {.inputs = {tensor("tokens", {4, 3})}, .outputs = {{{"reward"}}}},
       "model reward_model: no output \"reward\"; it gives rewards"},
      {train, {.inputs = {tensor("tokens", {1, 3})}}, "model critic_train: input \"mask\" is missing"},
      {train,
       {.inputs = {tensor("tokens", {3}), tensor("mask", {1, 2}, WireType::fp32)}},
       "model critic_train: input \"tokens\": expected the shape [-1,-1], -1 being any size, found [3]"},
  };
  for (const Case& one : cases)
    expect_answer({one.text, 400, one.text}, answer_of([&] {
                    check_inputs(one.model, one.request);
                    static_cast<void>(wanted_outputs(one.model, one.request));
                  }));
}

}  // namespace
}  // namespace kedge
