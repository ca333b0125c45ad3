/*
 * A task of FreeRTOS that receives from a Linux process.
 *
 * `cargo xtask qemu example-freertos` runs it on a Cortex-R5F of a ZCU102, with the process on the Cortex-A53s.
 */
#include <mdcom.h>
#include <musubi_zcu102.h> /* generated from firmware/demo-zcu102/system/system.toml */

#include <string.h>

#define LINE 64

/* The image's console (firmware/examples/freertos). */
void example_print(const char *text);

/* The next message, as a text of at most LINE - 1 characters. The task sleeps in the kernel until there is one. */
static mdcom_status_t next(char *text)
{
    mdcom_block_t block;
    mdcom_status_t status;
    void *data;
    size_t bytes;
    while ((status = mdcom_fifoch_dequeue_len(MUSUBI_FIFO_STREAM, &block, &bytes)) == MDCOM_E_EMPTY) {
        status = mdcom_fifoch_wait(MUSUBI_FIFO_STREAM, MDCOM_FOREVER);
        if (status != MDCOM_OK)
            return status;
    }
    if (status != MDCOM_OK)
        return status;
    status = mdcom_fifoch_get(MUSUBI_FIFO_STREAM, block, &data);
    if (bytes > LINE - 1)
        bytes = LINE - 1;
    /* The sender may write the block at any time, so only the copy is looked at. */
    memcpy(text, data, bytes);
    text[bytes] = '\0';
    mdcom_fifoch_free(MUSUBI_FIFO_STREAM, block);
    return status;
}

void receive(void *unused)
{
    mdcom_config_t config = MDCOM_CONFIG_INIT;
    char text[LINE];
    (void)unused;
    config.domain = "r5";
    config.plan_hash = MUSUBI_PLAN_HASH;
    if (mdcom_init(&config) != MDCOM_OK)
        example_print(mdcom_last_error());
    for (;;)
        example_print(next(text) == MDCOM_OK ? text : mdcom_last_error());
}
