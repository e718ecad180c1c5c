/*
 * The source of several plugins, selected by macro: ones that a registry accepts, and ones that it rejects.
 */
#include <stdlib.h>

#include "weir.h"

#define TABLE(text)                                                                                          \
	{                                                                                                    \
		.size = sizeof(weir_operator), .name = text                                                  \
	}

#if defined(PLUGIN_GOOD)
static const weir_operator first = TABLE("brought"), second = TABLE("brought_too");
#elif defined(PLUGIN_TAKEN)
static const weir_operator first = TABLE("added_before"), second = TABLE("sink");
#elif defined(PLUGIN_STAYS)
static const weir_operator first = TABLE("stays"), second = TABLE("stays_too");
#endif

#if defined(PLUGIN_LOUD)
__attribute__((constructor)) static void shout(void)
{
	setenv("WEIR_LOUD", "1", 1);
}
#elif defined(PLUGIN_ABI) || defined(PLUGIN_SIZES)
static weir_status add(weir_registry *registry)
{
	(void)registry;
	abort(); /* must not be called */
}
#ifdef PLUGIN_ABI
WEIR_API const weir_plugin_info weir_plugin = {7, sizeof(weir_plugin_info), 0, 0, 0, 0, add};
#else
WEIR_API const weir_plugin_info weir_plugin = {WEIR_ABI,
					       sizeof(weir_plugin_info),
					       offsetof(weir_operator, conditions) - sizeof(size_t),
					       sizeof(weir_condition),
					       sizeof(weir_port),
					       sizeof(weir_parameter),
					       add};
#endif
#else
static weir_status add(weir_registry *registry)
{
	weir_status status = weir_registry_add_operator(registry, &first);

	return status ? status : weir_registry_add_operator(registry, &second);
}
WEIR_PLUGIN(add);
#endif
