#pragma once
// The network part of every server's configuration: where it listens, who may call, and its limits. Independent of models.
#include <cstdint>
#include <optional>
#include <string>

#include "kedge/config/config_schema.h"

namespace kedge {

struct ServerConfig {
  std::string ip = "127.0.0.1";
  int64_t port = 0;
  std::optional<std::string> token_file = {};
  bool insecure = false;
  int64_t queue_limit = 4096;
  int64_t max_connections = 1024;
  ByteSize max_body{int64_t{1} << 30U};
  ByteSize max_memory{int64_t{4} << 30U};
  bool merge = true;
  int64_t max_merged_rows = 0;

  void fields(auto&& field) {
    field("ip", ip, "address to listen on; 0.0.0.0: all interfaces");
    field("port", port, "port to listen on; 0: any free port", at_least(0), at_most(65535));
    field("token_file", token_file,
          "file with the bearer token that clients must send; null: only calls that change the model need a token, created by the server");
    field("insecure", insecure, "require no token: anyone who reaches the port, even from other machines, may call and change the model");
    field("queue_limit", queue_limit, "calls that may wait; further calls get HTTP 503", at_least(1));
    field("max_connections", max_connections, "maximum number of open connections", at_least(1));
    field("max_body", max_body, "maximum size of a request", at_least(1));
    field("max_memory", max_memory, "maximum size of all pending requests together; further calls get HTTP 503; at least twice max_body",
          at_least(1));
    field("merge", merge, "compute waiting calls together if their rows have the same width; false: each alone");
    field("max_merged_rows", max_merged_rows, "maximum rows computed together; 0: no limit", at_least(0));
    field.alias("host", "ip");
  }
};

}  // namespace kedge
