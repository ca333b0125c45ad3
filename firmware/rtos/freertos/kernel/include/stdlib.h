/* The kernel includes stdlib.h and uses nothing of it. */
#ifndef MUSUBI_STDLIB_H
#define MUSUBI_STDLIB_H

#include <stddef.h>

#endif
