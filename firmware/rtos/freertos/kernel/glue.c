/*
 * What the kernel offers as macros or structs, as functions that Rust can call.
 *
 * Names begin with musubi_freertos_; src/kernel.rs declares them.
 */
#include <FreeRTOS.h>
#include <semphr.h>
#include <task.h>

/* Bytes that src/task.rs reserves for a task's control block. */
#define CONTROL_BYTES 384
_Static_assert(sizeof(StaticTask_t) <= CONTROL_BYTES, "a control block fits");
_Static_assert(_Alignof(StaticTask_t) <= 16, "and so does its alignment");
/* What a task sleeps on that waits for a channel. */
#define WAIT_INDEX 1

#if !defined(__riscv)
volatile uint32_t musubi_freertos_ended;
#endif

TaskHandle_t musubi_freertos_create(TaskFunction_t body, const char *name, size_t stack_bytes, void *argument,
                                    unsigned priority, void *stack, void *control)
{
    return xTaskCreateStatic(body, name, (configSTACK_DEPTH_TYPE)(stack_bytes / sizeof(StackType_t)), argument,
                             priority, stack, control);
}

void musubi_freertos_enter_critical(void)
{
    taskENTER_CRITICAL();
}

void musubi_freertos_exit_critical(void)
{
    taskEXIT_CRITICAL();
}

void musubi_freertos_yield(void)
{
    taskYIELD();
}

/* 64 bits, so that all targets count alike; the kernel's own width only bounds one sleep. */
uint64_t musubi_freertos_ticks(void)
{
    return xTaskGetTickCount();
}

void musubi_freertos_delay(uint32_t ticks)
{
    vTaskDelay(ticks);
}

/* Sleeps until notified or for so many ticks; 1 if notified. */
int musubi_freertos_sleep(uint32_t ticks)
{
    return ulTaskNotifyTakeIndexed(WAIT_INDEX, pdTRUE, ticks) != 0;
}

/* Takes a notification that has come already. */
void musubi_freertos_forget(void)
{
    (void)ulTaskNotifyTakeIndexed(WAIT_INDEX, pdTRUE, 0);
}

void musubi_freertos_wake(TaskHandle_t task)
{
    xTaskNotifyGiveIndexed(task, WAIT_INDEX);
}

/* The same in an interrupt; 1 if another task should run now. */
int musubi_freertos_wake_from_interrupt(TaskHandle_t task)
{
    BaseType_t switches = pdFALSE;
    vTaskNotifyGiveIndexedFromISR(task, WAIT_INDEX, &switches);
    return switches != pdFALSE;
}

void musubi_freertos_switch_from_interrupt(void)
{
    portYIELD_FROM_ISR(pdTRUE);
}

/* A tick of a timer whose interrupt the port does not serve itself. */
void musubi_freertos_tick_from_interrupt(void)
{
    if (xTaskIncrementTick() != pdFALSE)
        portYIELD_FROM_ISR(pdTRUE);
}

/* Ticks that a task noticed, where no interrupt does. */
void musubi_freertos_catch_up(uint32_t ticks)
{
    (void)xTaskCatchUpTicks(ticks);
}

int musubi_freertos_is_running(void)
{
    return xTaskGetSchedulerState() == taskSCHEDULER_RUNNING;
}

/* The monitor of tasks that share ends; made by its first use, before which no other task can be inside. */
static StaticSemaphore_t monitor_memory;
static SemaphoreHandle_t monitor;

void musubi_freertos_monitor_enter(void)
{
    taskENTER_CRITICAL();
    if (monitor == NULL)
        monitor = xSemaphoreCreateMutexStatic(&monitor_memory);
    taskEXIT_CRITICAL();
    (void)xSemaphoreTake(monitor, portMAX_DELAY);
}

void musubi_freertos_monitor_leave(void)
{
    (void)xSemaphoreGive(monitor);
}

int musubi_freertos_monitor_is_mine(void)
{
    return monitor != NULL && xSemaphoreGetMutexHolder(monitor) == xTaskGetCurrentTaskHandle();
}
