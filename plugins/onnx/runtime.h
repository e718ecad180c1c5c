/*
 * ONNX Runtime, loaded when it is first needed: the plugin is not linked with it. This header is where its
 * own header comes in. Only functions of the API version below are used, so a runtime of that age serves.
 */
#ifndef ONNX_RUNTIME_H
#define ONNX_RUNTIME_H

#include <onnxruntime_c_api.h>
#include <stdbool.h>
#include <stddef.h>

enum {
	RUNTIME_API = 16, /* of ONNX Runtime 1.16, the first with RunAsync */
	RUNTIME_WHY = 400 /* bytes of a line that says what failed */
};

/*
 * Gives the functions; they stay for the life of the process. Looks where WEIR_ONNXRUNTIME says (a file or a
 * folder), else beside the Python package that the plugin is in, else where the loader does, else into the
 * Python environment that is active. NULL: there is none, or one that is too old; `why` says so and the
 * remedy. Thread: any.
 */
const OrtApi *runtime_open(char why[RUNTIME_WHY]);
/* Returns true if the call was well. Else writes "WHAT: what the runtime says", and frees the status. */
bool runtime_good(const OrtApi *ort, OrtStatus *status, const char *what, char why[RUNTIME_WHY]);

#endif
