#ifndef SOCKET_H
#define SOCKET_H

#include <weir.h>

/* Adds the operators `udp`, `beat` and `count`. The plugin calls it when loaded. */
weir_status socket_add(weir_registry *registry);

#endif
