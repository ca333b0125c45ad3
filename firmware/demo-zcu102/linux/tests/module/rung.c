/* The driver of musubi_uio.c under the inter-processor interrupt block of a Zynq UltraScale+, channel PL 0 (UG1087, module IPI): all
 * is masked after reset; the line is high as long as a bit of ISR is set and not masked; ones written to ISR clear it. */
#include "kernel.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>

#define BLOCK 0xff340000u
#define ISR 0x10
#define IMR 0x14
#define IER 0x18
#define RPU0 0x100u
#define ALL 0x0f0f0301u
/* Interrupts that a test takes before it calls them a storm. */
#define STORM 10

extern struct platform_driver *const tested;

static u32 isr, imr = ALL, rung;
static int is_level = 1;
static struct uio_info *device;

u32 readl(const void *reg)
{
	switch ((uintptr_t)reg - BLOCK) {
	case ISR:
		return isr;
	case IMR:
		return imr;
	}
	assert(!"a register that can be read");
	return 0;
}

void writel(u32 value, void *reg)
{
	if ((uintptr_t)reg == 0xf900020cu) {
		rung = value;
		return;
	}
	switch ((uintptr_t)reg - BLOCK) {
	case ISR:
		isr &= ~value;
		return;
	case IER:
		imr &= ~value;
		return;
	}
	assert(!"a register that can be written");
}

void *devm_ioremap(struct device *dev, u64 address, size_t bytes)
{
	return (void *)(uintptr_t)address;
}

int of_property_count_u32_elems(const struct device_node *node, const char *name)
{
	return 4;
}

int of_property_read_u32_index(const struct device_node *node, const char *name, u32 index, u32 *out)
{
	static const u32 bells[] = { 0, 0, 0xf900020c, 0x08000000 };

	*out = bells[index];
	return 0;
}

int of_property_read_u32_array(const struct device_node *node, const char *name, u32 *out, size_t count)
{
	const u32 acknowledge[] = { 0, BLOCK + ISR, RPU0 }, unmask[] = { 0, BLOCK + IER, RPU0 };

	if (!is_level)
		return -EINVAL;
	assert(count == 3);
	memcpy(out, strcmp(name, "musubi,unmask") ? acknowledge : unmask, sizeof(acknowledge));
	return 0;
}

int devm_uio_register_device(struct device *dev, struct uio_info *info)
{
	device = info;
	return 0;
}

/* What the interrupt controller does with a level: interrupts as long as the line is high. Gives the events that a reader sees. */
static int events(void)
{
	int taken = 0, handled = 0;

	while ((isr & ~imr) && taken++ < STORM)
		handled += device->handler(61, device) == IRQ_HANDLED;
	assert(taken < STORM && "nobody silenced the device");
	return handled;
}

int main(void)
{
	struct platform_device pdev = { { NULL } };

	assert(tested->probe(&pdev) == 0);
	assert((imr & RPU0) == 0 && "a ring must get through");
	isr |= RPU0;
	assert(events() == 1 && isr == 0);
	assert(device->handler(61, device) == IRQ_NONE && "nobody rang");
	isr |= RPU0;
	assert(events() == 1 && "the next ring comes, too");
	assert(device->irqcontrol(device, 0) == 0 && rung == 0x08000000);
	assert(device->irqcontrol(device, 7) == -ENXIO);

	is_level = 0;
	assert(tested->probe(&pdev) == 0);
	assert(device->handler(121, device) == IRQ_HANDLED && "an edge needs nothing");
	puts("rung");
	return 0;
}
