/* The command, and the table of its subcommands. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/nearest.h"
#include "cli/cli.h"

static const struct cli_command *const commands[] = {&cli_run,       &cli_check,      &cli_show,
						     &cli_operators, &cli_conditions, &cli_report};
enum { COMMANDS = sizeof commands / sizeof commands[0] };

static const struct cli_command *find_command(const char *name)
{
	for (size_t i = 0; i < COMMANDS; i++)
		if (!strcmp(commands[i]->name, name))
			return commands[i];
	return NULL;
}

static void print_help(FILE *to)
{
	fputs("weir runs graphs of GPU work that are described in JSON.\n\n"
	      "usage: weir COMMAND ...\n\n",
	      to);
	for (size_t i = 0; i < COMMANDS; i++)
		fprintf(to, "  %-10s  %-24s  %s\n", commands[i]->name, commands[i]->argument,
			commands[i]->help);
	fputs("  help        [NAME]                    what a command does and takes: weir help run\n\n"
	      "options:\n"
	      "  --version   prints the version\n"
	      "  --help      prints this help; after a command, that command's help\n\n"
	      "exit codes:\n"
	      "  0  finished            3  graph or plugin refused       130  ended by SIGINT\n"
	      "  1  failed              4  deadlock                      143  ended by SIGTERM\n"
	      "  2  wrong usage         5  abandoned: no end in time     129  ended by SIGHUP\n\n"
	      "WEIR_LOG=off|error|warn|info|debug: what the library logs on stderr; warnings if it is not "
	      "set.\n",
	      to);
}

static int print_command_help(const struct cli_command *command)
{
	printf("usage: weir %s %s%s\n\n%s: %s.\n\n%s\noptions:\n", command->name, command->argument,
	       command->options ? " [OPTION]..." : "", command->name, command->help, command->text);
	cli_options_help(stdout, command->options | CLI_HELP);
	return CLI_OK;
}

static int refuse_word(const char *word)
{
	struct wr_nearest nearest = {.wanted = word};

	for (size_t i = 0; i < COMMANDS; i++)
		wr_nearest_try(&nearest, commands[i]->name);
	wr_nearest_try(&nearest, "help");
	if (!strcmp(word, "version"))
		cli_say("unknown command 'version'; use weir --version");
	else if (nearest.best)
		cli_say("unknown command '%s' (did you mean '%s'?); see weir --help", word, nearest.best);
	else
		cli_say("unknown %s '%s'; see weir --help", word[0] == '-' ? "option" : "command", word);
	return CLI_USAGE;
}

static int help_about(int argc, char **argv)
{
	const struct cli_command *command = argc > 0 ? find_command(argv[0]) : NULL;

	if (argc > 0 && !command)
		return refuse_word(argv[0]);
	if (command)
		return print_command_help(command);
	print_help(stdout);
	return CLI_OK;
}

/* The files of --python. As long as they are read, a signal ends the process. */
static int load_files(const struct cli_command *command, const struct cli_options *options)
{
	bool all = true;

	if (!options->python_count)
		return CLI_OK;
	if (command == &cli_run)
		cli_signals_reading(true);
	else
		cli_signals_unblock();
	for (size_t i = 0; all && i < options->python_count; i++)
		all = cli_python->load(options->pythons[i]);
	if (command == &cli_run)
		cli_signals_reading(false);
	return all ? CLI_OK : CLI_REFUSED;
}

static int run_command(const struct cli_command *command, int argc, char **argv)
{
	struct cli_options options = {0};
	int code;

	cli_say_for(command->name);
	code = cli_options_read(&options, command, argc, argv);
	if (!code && options.help)
		code = print_command_help(command);
	else if (!code && options.python_count && !cli_python)
		code = cli_python_become(command->name, argc, argv);
	else if (!code)
		code = load_files(command, &options);
	if (!code && !options.help)
		code = command->run(&options);
	cli_options_finish(&options);
	return code;
}

static int dispatch(int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : NULL;

	if (!word) {
		print_help(stderr);
		return CLI_USAGE;
	}
	if (!strcmp(word, "--version")) {
		printf("weir %s\n", weir_version());
		return CLI_OK;
	}
	if (!strcmp(word, "--help") || !strcmp(word, "-h") || !strcmp(word, "help"))
		return help_about(argc - 2, argv + 2);
	if (!find_command(word))
		return refuse_word(word);
	return run_command(find_command(word), argc - 1, argv + 1);
}

/*
 * Otherwise a file opened later would get the number of a closed stdout and receive what is printed. A closed
 * stdin stays one that cannot be read, since an empty one would be taken for input that has ended, and a
 * closed stdout one that cannot be written, since frames would be lost in silence.
 */
static void fill_standard_descriptors(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 &&
		    open("/dev/null", fd == STDOUT_FILENO ? O_RDONLY : O_WRONLY) < 0)
			return;
}

int cli_main(int argc, char **argv, const struct cli_python *python)
{
	cli_python = python;
	cli_signals_block(); /* first: every thread, the CUDA driver's included, inherits the mask */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is a failed write */
	fill_standard_descriptors();
	/* Otherwise streams share a hardware queue, and a long kernel on one delays short ones on another. */
	setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
	cli_log_open();
	return cli_flush(dispatch(argc, argv));
}
