# The fuzz targets; each has a source of its name here, and seeds in corpus/.
set(KEDGE_FUZZ_TARGETS fuzz_config fuzz_dashboard fuzz_http fuzz_jinja fuzz_journal fuzz_json fuzz_jsonl fuzz_kserve fuzz_math_answer fuzz_record_file
  fuzz_reward_reply fuzz_rollouts fuzz_run_folder fuzz_safetensors fuzz_sentencepiece fuzz_tokenizer_json fuzz_utf8)
# The parts of the program that these read with: what others send, and what runs left on disk.
set(KEDGE_FUZZ_CLI_TARGETS fuzz_dashboard fuzz_rollouts fuzz_run_folder)
set(KEDGE_FUZZ_CLI_SOURCES "")
foreach(name text/answer_json dashboard/dashboard_answers dashboard/dashboard_numbers dashboard/dashboard_runs text/json_lines text/replay_text report/report_answers report/report_charts
    report/report_page dashboard/request_query text/run_overview_text text/show_text report/svg_chart)
  list(APPEND KEDGE_FUZZ_CLI_SOURCES "${CMAKE_SOURCE_DIR}/cli/${name}.cpp")
endforeach()
