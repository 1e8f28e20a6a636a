#pragma once
// How loops are compiled for vector units: the macros of every source with kernels, once. The one header with #if in it.

// On x86_64 a function is compiled for the vector units found there too, and the best is taken when the program starts. Vectors of fixed
// size are as long as most units take.
#if defined(__x86_64__)
#define KEDGE_VECTOR_CLONES __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#define KEDGE_VECTOR_BYTES 32
#else
#define KEDGE_VECTOR_CLONES
#define KEDGE_VECTOR_BYTES 16
#endif

// For the pieces of such a function: only what is inlined is compiled for its unit.
#define KEDGE_INLINE [[gnu::always_inline]] inline
