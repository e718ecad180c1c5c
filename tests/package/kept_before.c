/*
 * A plugin as it was built in the past, against the kept header of an older ABI. It is refused before its
 * function is called.
 */
#include KEPT

#include <stdlib.h>

static weir_status add(weir_registry *registry)
{
	(void)registry;
	abort();
}

WEIR_PLUGIN(add);
