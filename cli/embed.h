#pragma once
// KEDGE_EMBED(name, "FILE") makes the bytes of a file a part of the program, as kedge_name_begin up to kedge_name_end. The assembler
// reads the file, so the compiler need not. CMake must be told of the dependency (OBJECT_DEPENDS).

#define KEDGE_EMBED(name, file) \
  __asm__(                      \
      ".pushsection .rodata\n"  \
      ".global kedge_" #name    \
      "_begin\n"                \
      ".global kedge_" #name    \
      "_end\n"                  \
      "kedge_" #name            \
      "_begin:\n"               \
      ".incbin \"" file         \
      "\"\n"                    \
      "kedge_" #name            \
      "_end:\n"                 \
      ".byte 0\n"               \
      ".popsection\n");         \
  extern "C" const char kedge_##name##_begin[], kedge_##name##_end[]

// The bytes as a std::string_view.
#define KEDGE_EMBEDDED(name) std::string_view(kedge_##name##_begin, static_cast<size_t>(kedge_##name##_end - kedge_##name##_begin))
