#include "library.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

struct request {
	struct request *next;
	const long *from;
	long *to;
	library_done *done;
	void *arg;
};

struct library {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct request *newest; /* a stack: the last request is answered first */
	bool closing;
};

static void answer(const struct request *request)
{
	long root = 0;

	usleep(200);
	while ((root + 1) * (root + 1) <= *request->from)
		root++;
	*request->to = root;
	request->done(request->arg, *request->from < 0);
}

static void *run(void *arg)
{
	struct library *library = arg;

	pthread_mutex_lock(&library->lock);
	while (library->newest || !library->closing) {
		struct request *request = library->newest;

		if (!request) {
			pthread_cond_wait(&library->changed, &library->lock);
			continue;
		}
		library->newest = request->next;
		pthread_mutex_unlock(&library->lock);
		answer(request);
		free(request);
		pthread_mutex_lock(&library->lock);
	}
	pthread_mutex_unlock(&library->lock);
	return NULL;
}

struct library *library_open(void)
{
	struct library *library = calloc(1, sizeof *library);

	if (!library)
		return NULL;
	pthread_mutex_init(&library->lock, NULL);
	pthread_cond_init(&library->changed, NULL);
	if (!pthread_create(&library->thread, NULL, run, library))
		return library;
	free(library);
	return NULL;
}

void library_ask(struct library *library, const long *from, long *to, library_done *done, void *arg)
{
	struct request *request = malloc(sizeof *request);

	if (!request) {
		done(arg, 1);
		return;
	}
	pthread_mutex_lock(&library->lock);
	*request = (struct request){library->newest, from, to, done, arg};
	library->newest = request;
	pthread_cond_signal(&library->changed);
	pthread_mutex_unlock(&library->lock);
}

void library_close(struct library *library)
{
	if (!library)
		return;
	pthread_mutex_lock(&library->lock);
	library->closing = true;
	pthread_cond_signal(&library->changed);
	pthread_mutex_unlock(&library->lock);
	pthread_join(library->thread, NULL);
	pthread_cond_destroy(&library->changed);
	pthread_mutex_destroy(&library->lock);
	free(library);
}
