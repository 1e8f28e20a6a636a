# The fuzz targets; each has a source of its name here, and seeds in corpus/.
set(KEDGE_FUZZ_TARGETS fuzz_config fuzz_dashboard fuzz_http fuzz_jinja fuzz_journal fuzz_json fuzz_jsonl fuzz_kserve fuzz_record_file
  fuzz_reward_reply fuzz_safetensors fuzz_sentencepiece fuzz_tokenizer_json fuzz_utf8)
# The parts of the program that read what others send.
set(KEDGE_FUZZ_DASHBOARD_SOURCES "${CMAKE_SOURCE_DIR}/cli/flat_line.cpp" "${CMAKE_SOURCE_DIR}/cli/request_query.cpp"
  "${CMAKE_SOURCE_DIR}/cli/server_numbers.cpp")
