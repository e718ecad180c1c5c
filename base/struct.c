#include "base/struct.h"

#include <string.h>

static size_t size_of(const void *given)
{
	size_t size;

	memcpy(&size, given, sizeof(size));
	return size;
}

weir_status wr_struct_check(const char *type, size_t size, size_t first)
{
	if (size >= first && size <= 4096) /* a larger value is an uninitialized field */
		return WEIR_OK;
	return wr_fail(WEIR_E_INVALID, "%s: its size is %zu: set .size = sizeof(%s)", type, size, type);
}

static weir_status check_rest(const char *type, const unsigned char *bytes, size_t size, size_t own_size)
{
	for (size_t i = own_size; i < size; i++)
		if (bytes[i])
			return wr_fail(WEIR_E_UNSUPPORTED,
				       "%s: a field is set that this library (%s) does not know: update it",
				       type, WEIR_VERSION);
	return WEIR_OK;
}

weir_status wr_struct_known(const char *type, const void *given, size_t own_size)
{
	size_t size = size_of(given);
	weir_status status = wr_struct_check(type, size, own_size);

	return status ? status : check_rest(type, given, size, own_size);
}

weir_status wr_struct_read(void *own, size_t own_size, const void *given, const char *type)
{
	size_t size = size_of(given);
	weir_status status = wr_struct_check(type, size, 2 * sizeof(size_t));

	if (!status)
		status = check_rest(type, given, size, own_size);
	if (status)
		return status;
	memcpy(own, given, size < own_size ? size : own_size);
	return WEIR_OK;
}

weir_status wr_struct_fill(void *given, const void *own, size_t own_size, const char *type)
{
	size_t size = size_of(given);
	weir_status status = wr_struct_check(type, size, 2 * sizeof(size_t));

	if (status)
		return status;
	size = size < own_size ? size : own_size;
	memcpy(given, own, size);
	memcpy(given, &size, sizeof(size));
	return WEIR_OK;
}

weir_status wr_flags_refuse(const char *call, unsigned flags, unsigned known)
{
	return wr_fail(WEIR_E_INVALID, "%s: flags %#x are unknown, it has %#x", call, flags & ~known, known);
}
