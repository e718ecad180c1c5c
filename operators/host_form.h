/*
 * The host form of a kernel, compiled twice where that pays: for any processor of the architecture, and for
 * one with AVX2, whose vectors are longer and permute bytes. The body is plain C in integers, which a
 * compiler vectorises, so both give the same bytes. All that it calls is WR_INLINED: a function that stays
 * outside is compiled once, for any processor.
 */
#ifndef WR_OPERATORS_HOST_FORM_H
#define WR_OPERATORS_HOST_FORM_H

#include <stddef.h>

#define WR_INLINED static inline __attribute__((always_inline))

/* memcpy of a few bytes, a constant number: _FORTIFY_SOURCE may make a call of each memcpy, to check it. */
WR_INLINED void wr_bytes_copy(void *to, const void *from, size_t bytes)
{
	__builtin_memcpy(to, from, bytes);
}

#if defined(__x86_64__) && !defined(WR_HOST_FORM_PLAIN)
#define WR_HOST_FORM(name, body)                                                                             \
	static int name##_plain(const void *arguments)                                                       \
	{                                                                                                    \
		return body(arguments);                                                                      \
	}                                                                                                    \
	__attribute__((target("avx2"))) static int name##_avx2(const void *arguments)                        \
	{                                                                                                    \
		return body(arguments);                                                                      \
	}                                                                                                    \
	static int name(const void *arguments)                                                               \
	{                                                                                                    \
		return __builtin_cpu_supports("avx2") ? name##_avx2(arguments) : name##_plain(arguments);    \
	}
#else
#define WR_HOST_FORM(name, body)                                                                             \
	static int name(const void *arguments)                                                               \
	{                                                                                                    \
		return body(arguments);                                                                      \
	}
#endif

#endif
