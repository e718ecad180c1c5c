"""Threads, atomics, clocks, random numbers and memory are used through base/ only; otherwise the seam would
miss them.
"""
import re
import sys

import source

HEADERS = {"pthread.h", "stdatomic.h", "threads.h", "semaphore.h", "sys/random.h"}
# pthread_sigmask is declared in <signal.h>: it neither waits nor orders.
SEAM = re.compile(
    r"(?<![.>\w])(pthread_(?!sigmask)\w+|thrd_\w+|mtx_\w+|cnd_\w+|sem_\w+|atomic_\w+|__atomic_\w+|__sync_\w+"
    r"|clock_gettime|gettimeofday|clock_nanosleep|nanosleep|usleep|sleep|sched_yield|syscall"
    r"|rand|srand|rand_r|random|srandom|drand48|getrandom|time|clock)\s*\("
)
MEMORY = re.compile(
    r"(?<![.>\w])(malloc|calloc|realloc|reallocarray|free|strdup|strndup|aligned_alloc|posix_memalign"
    r"|asprintf|vasprintf|open_memstream|getline)\s*\("
)
OUTSIDE = ["trace", "streams", "streams/cuda", "streams/host", "graphs", "conditions", "operators", "scheduler", "report", "cli"]
OWN_MEMORY = ["operators", "cli"]  # these use weir.h alone
OWN_THREADS = ["cli/metrics.c"]  # of the command: the seam is the library's


def calls(pattern, text):
    for found in pattern.finditer(text):
        start = text.rfind("\n", 0, found.start()) + 1
        if not text[start : found.start()].lstrip().startswith("#define"):
            yield text.count("\n", 0, found.start()) + 1, found.group(1)


def faults(root):
    for room in OUTSIDE:
        for path in source.files(root, room):
            text = source.code(path)
            place = path.relative_to(root)
            for line, _, name in source.includes(path):
                if name in HEADERS and place.as_posix() not in OWN_THREADS:
                    yield f"{place}:{line}: <{name}> belongs to base/"
            for line, name in calls(SEAM, text) if place.as_posix() not in OWN_THREADS else []:
                yield f"{place}:{line}: {name} belongs to base/: the seam does not see it here"
            if room not in OWN_MEMORY:
                for line, name in calls(MEMORY, text):
                    yield f"{place}:{line}: {name} belongs to base/memory.c: no test can make it fail here"


source.verdict(list(faults(sys.argv[1])), "threads, atomics, clocks, random numbers and memory go through base/")
