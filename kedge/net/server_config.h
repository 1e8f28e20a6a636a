#pragma once
// What every server's configuration says of the network: where it listens, who may call, and how much it takes on. Knows no model.
#include <cstdint>
#include <optional>
#include <string>

#include "kedge/core/config_schema.h"

namespace kedge {

struct ServerConfig {
  std::string ip = "127.0.0.1";
  int64_t port = 0;
  std::optional<std::string> token_file;
  bool insecure = false;
  int64_t queue_limit = 4096;
  int64_t max_connections = 1024;
  ByteSize max_body{int64_t{8} << 30U};
  bool merge = true;
  int64_t max_merged_rows = 0;

  void fields(auto&& field) {
    field("ip", ip, "the address it listens on; 0.0.0.0: all of this machine");
    field("port", port, "the port; 0: any that is free", at_least(0), at_most(65535));
    field("token_file", token_file, "a file with the word callers must send as a bearer token; null: none");
    field("insecure", insecure, "listen to other machines without a token");
    field("queue_limit", queue_limit, "calls that may wait; one more is told to come again later", at_least(1));
    field("max_connections", max_connections, "open at the same time", at_least(1));
    field("max_body", max_body, "largest request", at_least(1));
    field("merge", merge, "compute calls that wait together, where their rows have the same width; false: each alone");
    field("max_merged_rows", max_merged_rows, "rows computed together at most; 0: no limit", at_least(0));
    field.alias("host", "ip");
  }
};

}  // namespace kedge
