#pragma once
// A model as a server sees it: its signature, and the functions that check a request and run it. Independent of HTTP and of what is
// computed.
#include <functional>
#include <vector>

#include "kedge/net/kserve.h"
#include "kedge/net/signature.h"

namespace kedge {

// A model's result of a call; `parameters` go into the reply.
struct ServedResult {
  std::vector<WireTensor> outputs = {};
  Json parameters = Json(Json::Object{});
};

struct ServedModel {
  ModelSignature signature;
  // Checks a request when it arrives, its inputs already checked against the signature: RequestError for what the model cannot read. Called
  // from several threads.
  std::function<void(const InferRequest& request)> check = {};
  // May this one run yet? Empty: always. A RequestError if it never will. Called on the thread that runs models.
  std::function<bool(const InferRequest& request)> may_run = {};
  // Runs alone, on the one thread that runs models, in the order of arrival. Of a batched model, inputs may be the rows of several
  // requests, and every output must have a row for each; `parameters` are those of the first.
  std::function<ServedResult(const std::vector<WireTensor>& inputs, const Json& parameters)> run;
  // A call that is executed even if its caller is gone: training, saving.
  bool is_kept = false;
};

}  // namespace kedge
