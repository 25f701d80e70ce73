/* Starting threads where they can run at once. */
#ifndef RBT_BASE_THREAD_H
#define RBT_BASE_THREAD_H

#include <pthread.h>

/* Like pthread_create, and if the thread lies on the caller's core it is moved to another, if it may run there. */
int rbt_thread_start(pthread_t *thread, void *(*run)(void *argument), void *argument);

#endif
