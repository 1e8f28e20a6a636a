"""Conversations that every chat template of the tests is rendered with: (name, messages, options)."""

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Current weather at a place. Über-exact, with <tags> & \"quotes\".",
        "parameters": {
            "type": "object",
            "properties": {
                "place": {"type": "string", "description": "City, e.g. \"Zürich\"", "nullable": True},
                "unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius"},
                "days": {"type": "array", "items": {"type": "integer"}, "description": "which days"},
                "detail": {"type": ["string", "null"]},
                "box": {
                    "type": "object",
                    "properties": {"w": {"type": "number", "minimum": 0.5}, "deep": {"type": "object", "additionalProperties": False}},
                    "required": ["w"],
                },
                "either": {"anyOf": [{"type": "string"}, {"type": "null"}], "title": "Either"},
                "one": {"oneOf": [{"type": "string"}, {"type": "integer", "description": "a number"}]},
                "map": {"type": "object", "additionalProperties": {"type": "string"}},
                "ref": {"$ref": "#/$defs/Thing"},
            },
            "required": ["place"],
            "$defs": {"Thing": {"type": "string"}},
        },
        "return": {"type": "string", "description": "a report"},
    },
}
ADD = {
    "type": "function",
    "function": {
        "name": "add",
        "description": "Adds two numbers.",
        "parameters": {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}, "required": ["a", "b"]},
    },
}
BARE = {"type": "function", "function": {"name": "ping", "description": "", "parameters": {}}}
TOOLS = [WEATHER, ADD]

SYSTEM = {"role": "system", "content": "  Be brief.\nUse \"plain\" words. "}
HELLO = {"role": "user", "content": "Hello, who are you?"}
ANSWER = {"role": "assistant", "content": "I am a test."}
MORE = {"role": "user", "content": " And what is 2+2? \n"}
FOUR = {"role": "assistant", "content": "\n4 "}
CALL = {
    "role": "assistant",
    "content": "",
    "tool_calls": [{"id": "call12345", "type": "function", "function": {"name": "get_weather", "arguments": {"place": "Zürich", "days": [1, 2], "unit": None}}}],
}
RESULT = {"role": "tool", "name": "get_weather", "tool_call_id": "call12345", "content": '{"temp": 21.5, "text": "sunny <b>"}'}


def variant(message, **changes):
    return {**message, **changes}


def without(message, *keys):
    return {key: value for key, value in message.items() if key not in keys}


def second_call(arguments):
    return {"id": "abcdefghi", "type": "function", "function": {"name": "add", "arguments": arguments}}


STRING_CALL = variant(CALL, tool_calls=[{"id": "call12345", "type": "function", "function": {"name": "add", "arguments": '{"a": 1, "b": 2}'}}])
TWO_CALLS = variant(CALL, content="Let me look.", tool_calls=CALL["tool_calls"] + [second_call({"a": 1.0, "b": -2e20})])
TWO_RESULTS = [RESULT, {"role": "tool", "name": "add", "tool_call_id": "abcdefghi", "content": "3"}]
BARE_CALL = variant(CALL, tool_calls=[{"name": "add", "arguments": {"a": 1, "b": 2}}])
PARTS = {"role": "user", "content": [{"type": "text", "text": "Look at"}, {"type": "image", "image": "x.png"}, {"type": "text", "text": " this: "}]}
TEXT_PARTS = {"role": "user", "content": [{"type": "text", "text": "only "}, {"type": "text", "text": "text"}]}
ANSWER_PARTS = {"role": "assistant", "content": [{"type": "text", "text": "I see."}]}
THOUGHT = {"role": "assistant", "content": "<think>\nhm, 2+2\n</think>\n\nFour."}
REASONED = {"role": "assistant", "reasoning_content": "\nI add.\n", "content": "Four!"}
REASONED_CALL = variant(CALL, reasoning_content="I need the weather.")
UNICODE = {"role": "user", "content": "héllo 世界 😀 \u3000\u00a0 \u2028 tab\there \\n 'single' \"double\" {{ not }} {% code %} <|im_end|>"}
DOCUMENTS = [{"title": "A", "text": "First text.", "doc_id": 1}, {"title": "B", "text": "Zweiter Text.", "contents": "x"}]

CHATS = {
    "hello": [HELLO],
    "system": [SYSTEM, HELLO],
    "turn": [HELLO, ANSWER],
    "turns": [HELLO, ANSWER, MORE],
    "system turns": [SYSTEM, HELLO, ANSWER, MORE, FOUR],
    "many turns": [SYSTEM] + [HELLO, ANSWER, MORE, FOUR] * 3 + [HELLO],
    "unicode": [variant(SYSTEM, content="日本語で。"), UNICODE, variant(ANSWER, content="😀é")],
    "empty": [variant(HELLO, content="")],
    "empty answer": [HELLO, variant(ANSWER, content="")],
    "no content": [HELLO, {"role": "assistant"}],
    "none content": [HELLO, variant(ANSWER, content=None), MORE],
    "system only": [SYSTEM],
    "empty system": [variant(SYSTEM, content=""), HELLO],
    "system late": [HELLO, ANSWER, SYSTEM, MORE],
    "two systems": [SYSTEM, SYSTEM, HELLO],
    "developer": [variant(SYSTEM, role="developer"), HELLO, ANSWER],
    "assistant first": [ANSWER, HELLO],
    "two users": [HELLO, MORE],
    "two answers": [HELLO, ANSWER, FOUR],
    "strange role": [HELLO, {"role": "narrator", "content": "meanwhile"}, MORE],
    "no role": [{"content": "x"}],
    "call": [HELLO, CALL],
    "call result": [HELLO, CALL, RESULT],
    "call answer": [SYSTEM, HELLO, CALL, RESULT, ANSWER, MORE],
    "string call": [HELLO, STRING_CALL, RESULT, ANSWER],
    "two calls": [SYSTEM, HELLO, TWO_CALLS, *TWO_RESULTS, ANSWER],
    "call after call": [HELLO, CALL, RESULT, variant(CALL, content=None), RESULT, ANSWER],
    "no content call": [HELLO, without(CALL, "content"), RESULT],
    "bare call": [HELLO, BARE_CALL, variant(RESULT, content={"sum": 3, "ok": True})],
    "call without id": [HELLO, variant(CALL, tool_calls=[without(CALL["tool_calls"][0], "id")]), without(RESULT, "tool_call_id", "name")],
    "empty calls": [HELLO, variant(ANSWER, tool_calls=[])],
    "result first": [RESULT],
    "result parts": [HELLO, CALL, variant(RESULT, content=[{"type": "text", "text": "21"}])],
    "parts": [PARTS],
    "parts turns": [variant(SYSTEM, content=[{"type": "text", "text": "Be brief."}]), PARTS, ANSWER_PARTS, TEXT_PARTS],
    "text parts": [TEXT_PARTS, ANSWER],
    "thought": [HELLO, THOUGHT, MORE],
    "thought last": [HELLO, ANSWER, MORE, THOUGHT],
    "reasoned": [HELLO, REASONED, MORE, REASONED],
    "reasoned call": [HELLO, REASONED_CALL, RESULT, REASONED],
    "reasoning": [HELLO, variant(ANSWER, thinking="a thought"), MORE, variant(FOUR, reasoning="another")],
    "named": [variant(HELLO, name="bob"), variant(ANSWER, extra={"k": [1, None, True]}), MORE],
    "no_think": [variant(HELLO, content="Hello /no_think"), ANSWER, variant(MORE, content="x /think")],
}


def cases():
    for name, messages in CHATS.items():
        has_calls = any("tool_calls" in m or m.get("role") == "tool" for m in messages)
        yield name, messages, {}
        yield name + " prompt", messages, {"add_generation_prompt": True}
        if has_calls or name in ("hello", "system", "turns", "system turns", "system only", "parts turns"):
            yield name + " tools", messages, {"tools": TOOLS, "add_generation_prompt": True}
    hello = CHATS["system turns"]
    yield "bare tool", hello, {"tools": [BARE]}
    yield "no tools", hello, {"tools": []}
    yield "raw tool", hello, {"tools": [WEATHER["function"]]}
    yield "documents", [HELLO], {"documents": DOCUMENTS, "add_generation_prompt": True}
    yield "continue", hello, {"continue": "content"}
    yield "continue spaces", [HELLO, variant(ANSWER, content="I am  ")], {"continue": "content"}
    yield "continue parts", CHATS["parts turns"], {"continue": "content"}
    yield "continue reasoning", CHATS["reasoned"], {"continue": "reasoning_content"}
    yield "continue nothing", [HELLO, {"role": "assistant", "content": None}], {"continue": "content"}
    for name, value in [
        ("enable_thinking", False), ("enable_thinking", True), ("thinking", True), ("reasoning_effort", "high"), ("date_string", "1 May 2025"),
        ("tools_in_user_message", False), ("builtin_tools", ["code_interpreter", "brave_search"]), ("custom_tools", TOOLS), ("model_identity", "You are X."),
        ("bos_token", "<BOS>"), ("keep_past_thinking", True), ("xml_tools", TOOLS), ("python_tools", ["def f(): pass"]), ("citation_options", {"mode": "fast"}),
        ("add_vision_id", True), ("preserve_thinking", True), ("documents_style", 1.5),
    ]:
        yield f"{name}={value!r}"[:40], CHATS["call answer"], {"variables": {name: value}, "add_generation_prompt": True}
        yield f"{name}={value!r} reasoned"[:50], CHATS["reasoned"], {"variables": {name: value}, "tools": TOOLS, "add_generation_prompt": True}
