/*
 * The arithmetic of normalize, compiled for the host and for CUDA. It is done in double, without a product
 * that could be contracted with a sum, and rounded once: so both give the same bits.
 */
#ifndef WR_OPERATORS_NORMALIZE_H
#define WR_OPERATORS_NORMALIZE_H

#include <string.h>

#include "operators/pixel.h"

WR_PIXEL double wr_normalize_level(const struct wr_normalize_arguments *job, int32_t level, int32_t channel)
{
	return (level / job->range - job->mean[channel]) / job->std[channel];
}

/*
 * The bits of the float16 or bfloat16 nearest to the value, ties to even; too large a value becomes infinite.
 * A number has `digits` bits after the point and exponents from 1 - most to most.
 */
WR_PIXEL uint16_t wr_normalize_short(double value, int32_t type)
{
	int32_t digits = type == WR_BFLOAT16 ? 7 : 10, most = type == WR_BFLOAT16 ? 127 : 15,
		least = 1 - most;
	uint32_t infinite = (uint32_t)(2 * most + 1) << digits;
	uint64_t bits, mantissa, kept, rest, tie;
	int32_t exponent, dropped;
	uint32_t sign;

	memcpy(&bits, &value, sizeof bits);
	sign = (uint32_t)(bits >> 48) & 0x8000;
	exponent = (int32_t)(bits >> 52 & 2047) - 1023;
	mantissa = (bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1) << 52;
	if (exponent == 1024 && mantissa << 12)
		return (uint16_t)(sign | infinite | 1u << (digits - 1)); /* not a number */
	if (exponent > most)
		return (uint16_t)(sign | infinite);
	if (exponent < least - digits - 1)
		return (uint16_t)sign;
	dropped =
		52 - digits; /* bits: digits and the one before the point stay, fewer of a subnormal number */
	if (exponent < least)
		dropped += least - exponent;
	kept = mantissa >> dropped;
	rest = mantissa & ((UINT64_C(1) << dropped) - 1);
	tie = UINT64_C(1) << (dropped - 1);
	kept += rest > tie || (rest == tie && (kept & 1));
	if (exponent >= least)
		kept += (uint64_t)(exponent - least)
			<< digits; /* a carry goes into the exponent, as it should */
	return (uint16_t)(sign | (uint32_t)kept);
}

#endif
