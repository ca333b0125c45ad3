/* As much of the Linux kernel as musubi_uio.c asks for, to run its interrupt handler in a test. What is asked of the devicetree and
 * of registers, rung.c answers. */
#ifndef MUSUBI_KERNEL_STANDIN
#define MUSUBI_KERNEL_STANDIN

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

typedef uint32_t u32;
typedef int32_t s32;
typedef uint64_t u64;
typedef int irqreturn_t;
#define IRQ_NONE 0
#define IRQ_HANDLED 1
#define __iomem
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define KERNEL_VERSION(a, b, c) (((a) << 16) + ((b) << 8) + (c))
#define LINUX_VERSION_CODE KERNEL_VERSION(6, 1, 0)
#define GFP_KERNEL 0
#define VM_WRITE 2ul
#define VM_MAYWRITE 32ul
#define UIO_MEM_PHYS 1
#define UIO_IRQ_CUSTOM (-1)
#define IORESOURCE_MEM 0
#define PAGE_ALIGNED(x) (((x) & 0xfff) == 0)
#define PHYS_PFN(x) ((x) >> 12)

struct device_node;
struct device { struct device_node *of_node; };
struct platform_device { struct device dev; };
struct of_device_id { const char *compatible; };
struct resource { u64 start, end; };
struct uio_mem { const char *name; u64 addr, size; int memtype; };
struct vm_area_struct { unsigned long vm_flags, vm_pgoff, vm_start, vm_end; int vm_page_prot; };
struct uio_info {
	const char *name, *version;
	struct uio_mem mem[5];
	long irq;
	void *priv;
	irqreturn_t (*handler)(int irq, struct uio_info *info);
	int (*mmap)(struct uio_info *info, struct vm_area_struct *vma);
	int (*irqcontrol)(struct uio_info *info, s32 value);
};
struct platform_driver {
	struct { const char *name; const struct of_device_id *of_match_table; } driver;
	int (*probe)(struct platform_device *pdev);
};

u32 readl(const void *reg);
void writel(u32 value, void *reg);
void *devm_ioremap(struct device *dev, u64 address, size_t bytes);
int of_property_count_u32_elems(const struct device_node *node, const char *name);
int of_property_read_u32_index(const struct device_node *node, const char *name, u32 index, u32 *out);
int of_property_read_u32_array(const struct device_node *node, const char *name, u32 *out, size_t count);
int devm_uio_register_device(struct device *dev, struct uio_info *info);

static inline void *devm_kzalloc(struct device *dev, size_t bytes, int flags) { return calloc(1, bytes); }
static inline u64 resource_size(const struct resource *range) { return range->end - range->start + 1; }
static inline int pgprot_writecombine(int prot) { return prot; }
static inline int remap_pfn_range(struct vm_area_struct *v, unsigned long a, u64 p, unsigned long n, int q) { return 0; }
static inline int platform_get_irq_optional(struct platform_device *pdev, unsigned int number) { return 61; }
static inline int of_property_read_string(const struct device_node *node, const char *name, const char **out)
{
	*out = "zcu102/linux";
	return 0;
}
static inline struct resource *platform_get_resource_byname(struct platform_device *p, int kind, const char *name)
{
	static struct resource range = { 0x3f000000, 0x3f0fffff };
	return &range;
}
#define dev_err_probe(dev, error, ...) (error)
#define MODULE_DEVICE_TABLE(kind, table) _Static_assert(1, "")
#define MODULE_DESCRIPTION(text) _Static_assert(1, "")
#define MODULE_LICENSE(text) _Static_assert(1, "")
#define module_platform_driver(driver) struct platform_driver *const tested = &driver

#endif
