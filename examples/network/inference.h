#ifndef NETWORK_INFERENCE_H
#define NETWORK_INFERENCE_H

#include <weir.h>

extern const weir_condition inference;

#endif
