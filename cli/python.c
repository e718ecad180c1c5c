/*
 * --python FILE: the command has no interpreter, so it becomes one. python3 of the PATH runs the same
 * subcommand of the package weir-gpu (python/weir/__main__.py) with the same arguments.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

/* A folder `weir` of the working directory must not be taken for the package. */
static const char program[] = "import sys\n"
			      "sys.path = [path for path in sys.path if path]\n"
			      "try:\n"
			      "    from weir.__main__ import main\n"
			      "except ImportError as error:\n"
			      "    sys.exit(f'weir {sys.argv[1]}: --python needs the Python package "
			      "weir-gpu, which {sys.executable} lacks:"
			      " {error}')\n"
			      "sys.exit(main())\n";

int cli_python_become(const char *command, int argc, char **argv)
{
	static const char *const head[] = {"python3", "-c", program};
	enum { HEAD = sizeof head / sizeof head[0] };
	const char **words = calloc((size_t)argc + HEAD + 1, sizeof *words);

	if (!words) {
		cli_say("the command line: out of memory");
		return CLI_FAILED;
	}
	memcpy(words, head, sizeof head);
	words[HEAD] = command;
	for (int i = 1; i < argc; i++)
		words[HEAD + i] = argv[i];
	cli_signals_unblock();
	execvp(words[0], (char **)words);
	cli_say("--python needs python3, 3.11 or newer, with the package weir-gpu: cannot start python3: %s",
		strerror(errno));
	free(words);
	return CLI_FAILED;
}
