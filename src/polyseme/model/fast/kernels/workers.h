/* Threads that wait for jobs, to run a few independent ones at once.
 *
 *     native.c  ->  workers.h
 *
 * A hand-off between Python threads takes longer than a layer of a short sentence. A worker looks for its next job for
 * some microseconds before it sleeps, and so does a caller for the end of a job. Workers start when they are needed
 * first and are gone in a forked child, which starts its own. Several callers at once take different workers; without a
 * free one a caller does its jobs by itself.
 */

#include <pthread.h>

/* glibc 2.34 moved these two into libc.so under a new version. By their old one the library also loads with glibc 2.17, which
 * a wheel for manylinux_2_17 promises; every glibc still has it. */
#if defined(__x86_64__) && defined(__GLIBC__)
__asm__(".symver pthread_create, pthread_create@GLIBC_2.2.5");
__asm__(".symver pthread_detach, pthread_detach@GLIBC_2.2.5");
#endif

#define WORKERS 64
#define LOOKS 2000 /* before a thread sleeps: some 20 microseconds */

struct job {
    void (*run)(void *);
    void *what;
};

enum { FREE, TAKEN, GIVEN, DONE }; /* a worker's state; a caller changes FREE, TAKEN and DONE, a worker GIVEN */

static struct worker {
    int state, started;
    struct job job;
    pthread_mutex_t lock;
    pthread_cond_t changed;
} workers[WORKERS];
static pthread_mutex_t workers_lock = PTHREAD_MUTEX_INITIALIZER;
static int workers_known; /* whether a forked child resets them */

static INLINE void look_again(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

static void set_state(struct worker *w, int state)
{
    pthread_mutex_lock(&w->lock);
    __atomic_store_n(&w->state, state, __ATOMIC_RELEASE);
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

static void wait_for_state(struct worker *w, int state)
{
    for (int at = 0; at < LOOKS; at++, look_again())
        if (__atomic_load_n(&w->state, __ATOMIC_ACQUIRE) == state)
            return;
    pthread_mutex_lock(&w->lock);
    while (__atomic_load_n(&w->state, __ATOMIC_ACQUIRE) != state)
        pthread_cond_wait(&w->changed, &w->lock);
    pthread_mutex_unlock(&w->lock);
}

static void *work(void *one)
{
    struct worker *w = one;
    for (;;) {
        wait_for_state(w, GIVEN);
        w->job.run(w->job.what);
        set_state(w, DONE);
    }
    return NULL;
}

static void forget_workers(void) /* in a forked child, where they do not run */
{
    pthread_mutex_init(&workers_lock, NULL);
    memset(workers, 0, sizeof workers);
}

/* A free worker, now taken; NULL if there is none and none can start. */
static struct worker *take_worker(void)
{
    struct worker *taken = NULL;
    pthread_mutex_lock(&workers_lock);
    if (!workers_known)
        workers_known = !pthread_atfork(NULL, NULL, forget_workers);
    for (int at = 0; at < WORKERS && workers_known && !taken; at++) {
        struct worker *w = workers + at;
        pthread_t thread;
        if (!w->started) {
            pthread_mutex_init(&w->lock, NULL);
            pthread_cond_init(&w->changed, NULL);
            if (pthread_create(&thread, NULL, work, w))
                break;
            pthread_detach(thread);
            w->started = 1;
        }
        if (__atomic_load_n(&w->state, __ATOMIC_ACQUIRE) == FREE)
            taken = w;
    }
    if (taken)
        __atomic_store_n(&taken->state, TAKEN, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&workers_lock);
    return taken;
}

/* Run all jobs, up to `threads` of them at once, the last ones in this thread. */
static void run_jobs(const struct job *jobs, int64_t count, int64_t threads)
{
    struct worker *busy[WORKERS], *w;
    int64_t given = 0;
    while (given < count - 1 && given < threads - 1 && given < WORKERS && (w = take_worker())) {
        w->job = jobs[given];
        set_state(w, GIVEN);
        busy[given++] = w;
    }
    for (int64_t at = given; at < count; at++)
        jobs[at].run(jobs[at].what);
    for (int64_t at = 0; at < given; at++) {
        wait_for_state(busy[at], DONE);
        __atomic_store_n(&busy[at]->state, FREE, __ATOMIC_RELEASE);
    }
}
