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

/* The bits of the float16 nearest to the value, ties to even; too large a value becomes infinite. */
WR_PIXEL uint16_t wr_normalize_half(double value)
{
	uint64_t bits, mantissa, kept, rest, tie;
	int32_t exponent, dropped;
	uint32_t sign;

	memcpy(&bits, &value, sizeof bits);
	sign = (uint32_t)(bits >> 48) & 0x8000;
	exponent = (int32_t)(bits >> 52 & 2047) - 1023;
	mantissa = (bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1) << 52;
	if (exponent == 1024 && mantissa << 12)
		return (uint16_t)(sign | 0x7e00); /* not a number */
	if (exponent > 15)
		return (uint16_t)(sign | 0x7c00);
	if (exponent < -25)
		return (uint16_t)sign;
	dropped = exponent < -14 ? 28 - exponent : 42; /* bits: 11 stay, fewer of a subnormal number */
	kept = mantissa >> dropped;
	rest = mantissa & ((UINT64_C(1) << dropped) - 1);
	tie = UINT64_C(1) << (dropped - 1);
	kept += rest > tie || (rest == tie && (kept & 1));
	if (exponent >= -14)
		kept += (uint64_t)(exponent + 14) << 10; /* a carry goes into the exponent, as it should */
	return (uint16_t)(sign | (uint32_t)kept);
}

#endif
