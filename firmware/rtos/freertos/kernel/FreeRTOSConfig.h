/*
 * How the kernel is configured: static memory only, a tick of one millisecond, two notifications a task.
 *
 * Notification 0 is the program's; notification 1 is what a task sleeps on that waits for a channel.
 */
#ifndef FREERTOS_CONFIG_H
#define FREERTOS_CONFIG_H

#include <stddef.h>
#include <stdint.h>

/* Memory: all of it is the program's statics. */
#define configSUPPORT_STATIC_ALLOCATION 1
#define configSUPPORT_DYNAMIC_ALLOCATION 0
#define configKERNEL_PROVIDED_STATIC_MEMORY 1

/* Scheduling. */
#define configUSE_PREEMPTION 1
#define configUSE_TIME_SLICING 1
#define configIDLE_SHOULD_YIELD 1
#define configMAX_PRIORITIES 8
#define configTICK_RATE_HZ ((TickType_t)1000)
#define configTICK_TYPE_WIDTH_IN_BITS MUSUBI_TICK_BITS
#define configUSE_PORT_OPTIMISED_TASK_SELECTION 1
#define configUSE_TASK_NOTIFICATIONS 1
#define configTASK_NOTIFICATION_ARRAY_ENTRIES 2
#define configMAX_TASK_NAME_LEN 16
/* Words. The idle task calls our hook, which looks at doorbells. */
#define configMINIMAL_STACK_SIZE 1024

/* Parts of the kernel. */
#define configUSE_MUTEXES 1
#define configUSE_RECURSIVE_MUTEXES 0
#define configUSE_COUNTING_SEMAPHORES 1
#define configUSE_TIMERS 0
#define configUSE_CO_ROUTINES 0
#define configUSE_EVENT_GROUPS 0
#define configUSE_STREAM_BUFFERS 0
#define configUSE_TRACE_FACILITY 0
#define configUSE_IDLE_HOOK 1
#define configUSE_TICK_HOOK 0
#define INCLUDE_vTaskDelay 1
#define INCLUDE_xTaskDelayUntil 1
#define INCLUDE_vTaskPrioritySet 1
#define INCLUDE_uxTaskPriorityGet 1
#define INCLUDE_vTaskSuspend 1
#define INCLUDE_vTaskDelete 1
#define INCLUDE_xTaskGetCurrentTaskHandle 1
#define INCLUDE_xTaskGetSchedulerState 1
#define INCLUDE_xSemaphoreGetMutexHolder 1
#define INCLUDE_uxTaskGetStackHighWaterMark 1

/* Mistakes of the program end it with a message. */
#define configCHECK_FOR_STACK_OVERFLOW 2
extern void musubi_freertos_broken(const char *file, int line);
#define configASSERT(holds)                                   \
    do {                                                      \
        if (!(holds))                                         \
            musubi_freertos_broken(__FILE__, __LINE__);       \
    } while (0)

#if defined(__riscv)
/* QEMU's and SiFive's core-local interruptor: 10 MHz. */
#define MUSUBI_TICK_BITS TICK_TYPE_WIDTH_64_BITS
#define configMTIME_BASE_ADDRESS 0x0200BFF8UL
#define configMTIMECMP_BASE_ADDRESS 0x02004000UL
#define configCPU_CLOCK_HZ 10000000UL
#define configISR_STACK_SIZE_WORDS 1024
#else
#define MUSUBI_TICK_BITS TICK_TYPE_WIDTH_32_BITS
/* Our interrupt dispatch ends interrupts itself, so what the port writes goes to a word that nobody reads. */
extern volatile uint32_t musubi_freertos_ended;
#define configEOI_ADDRESS ((uint32_t)&musubi_freertos_ended)
extern void musubi_freertos_start_tick(void);
#define configSETUP_TICK_INTERRUPT() musubi_freertos_start_tick()
#define configCLEAR_TICK_INTERRUPT()
/* No task has floating point, so there is none to save. */
#define configUSE_TASK_FPU_SUPPORT 1
#define configFPU_D32 0
#endif

#endif /* FREERTOS_CONFIG_H */
