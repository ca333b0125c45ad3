/* What the kernel uses of a C library's string.h; the functions are in Rust's compiler support. */
#ifndef MUSUBI_STRING_H
#define MUSUBI_STRING_H

#include <stddef.h>

void *memcpy(void *to, const void *from, size_t bytes);
void *memmove(void *to, const void *from, size_t bytes);
void *memset(void *to, int value, size_t bytes);
int memcmp(const void *a, const void *b, size_t bytes);
size_t strlen(const char *text);

#endif
