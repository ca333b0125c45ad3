// SPDX-License-Identifier: GPL-2.0
/*
 * Musubi's memory of one domain, as a UIO device.
 *
 * The node that `musubi generate` writes (compatible "musubi,uio") names the system and the domain, which becomes the
 * device's name, and has these ranges of memory, which become the mappings of the same names and order:
 *
 *   all       the sections of all participants and the segments: readable only
 *   own       the sections of the domain's own participants
 *   segments  the memory of SMEM channels, if the domain is a member of one or the Master, which zeroes them
 *
 * A process cannot map "all" for writing, nor make a mapping of it writable later, so what a peer wrote can only be
 * changed by that peer. The mappings are Normal memory without caching ("write-combining"): unaligned accesses and
 * ordinary copies are legal there, and no cache stands between the cores.
 *
 * The node's interrupt, if it has one, is raised by peers: each one ends a read() of the device. An edge needs nothing. A level,
 * as that of a mailbox block, stays raised until it is acknowledged: then the property "musubi,acknowledge", <address-high
 * address-low value>, says what to store at each interrupt, and "musubi,unmask" what to store once to let it through. The
 * register that acknowledges shows by the value's bits whether a peer has rung; an interrupt without them is not ours.
 *
 * Writing the number of a domain (32 bits) to the device rings its doorbell: the driver stores a value in a register,
 * as the property "musubi,doorbells" says: <domain address-high address-low value>, once a domain. Ringing never waits.
 */

#include <linux/interrupt.h>
#include <linux/io.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/of.h>
#include <linux/platform_device.h>
#include <linux/uio_driver.h>
#include <linux/version.h>

#define DOORBELL_CELLS 4
/* <address-high address-low value> */
#define STORE_CELLS 3
/* As many as a system can have domains. */
#define DOORBELLS_MAX 32

static const char *const mapping_names[] = { "all", "own", "segments" };
#define MAPPING_ALL 0

struct doorbell {
	u32 domain;
	u32 value;
	void __iomem *reg;
};

struct store {
	u32 value;
	void __iomem *reg; /* NULL: none */
};

struct musubi {
	struct uio_info info;
	struct store acknowledge;
	unsigned int doorbells;
	struct doorbell doorbell[DOORBELLS_MAX];
};

static irqreturn_t musubi_interrupt(int irq, struct uio_info *info)
{
	struct musubi *musubi = info->priv;

	if (musubi->acknowledge.reg) {
		if (!(readl(musubi->acknowledge.reg) & musubi->acknowledge.value))
			return IRQ_NONE;
		writel(musubi->acknowledge.value, musubi->acknowledge.reg);
		/* Done at the device before the controller looks at the line again, and before a reader looks at memory. */
		readl(musubi->acknowledge.reg);
	}
	/* The kernel's UIO part counts the event and wakes the readers. */
	return IRQ_HANDLED;
}

static void forbid_writing(struct vm_area_struct *vma)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
	vm_flags_clear(vma, VM_MAYWRITE);
#else
	vma->vm_flags &= ~VM_MAYWRITE;
#endif
}

/* The UIO part has checked that the mapping exists and is long enough. */
static int musubi_mmap(struct uio_info *info, struct vm_area_struct *vma)
{
	const struct uio_mem *mem = &info->mem[vma->vm_pgoff];

	if (vma->vm_pgoff == MAPPING_ALL) {
		if (vma->vm_flags & VM_WRITE)
			return -EACCES;
		forbid_writing(vma);
	}
	if (vma->vm_end - vma->vm_start > mem->size)
		return -EINVAL;
	vma->vm_page_prot = pgprot_writecombine(vma->vm_page_prot);
	return remap_pfn_range(vma, vma->vm_start, PHYS_PFN(mem->addr), vma->vm_end - vma->vm_start,
			       vma->vm_page_prot);
}

/* write() to the device. */
static int musubi_ring(struct uio_info *info, s32 domain)
{
	struct musubi *musubi = info->priv;
	unsigned int i;

	for (i = 0; i < musubi->doorbells; i++) {
		if (musubi->doorbell[i].domain != domain)
			continue;
		/* Ordered after what the process has stored in the memory before. */
		writel(musubi->doorbell[i].value, musubi->doorbell[i].reg);
		return 0;
	}
	return -ENXIO;
}

static int find_mappings(struct platform_device *pdev, struct uio_info *info)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(mapping_names); i++) {
		struct resource *range = platform_get_resource_byname(pdev, IORESOURCE_MEM, mapping_names[i]);

		if (!range)
			break;
		if (!PAGE_ALIGNED(range->start) || !PAGE_ALIGNED(resource_size(range)))
			return dev_err_probe(&pdev->dev, -EINVAL, "\"%s\" is not made of pages\n", mapping_names[i]);
		info->mem[i].name = mapping_names[i];
		info->mem[i].addr = range->start;
		info->mem[i].size = resource_size(range);
		info->mem[i].memtype = UIO_MEM_PHYS;
	}
	if (i < 2)
		return dev_err_probe(&pdev->dev, -EINVAL, "the node lacks the memory \"%s\"\n", mapping_names[i]);
	return 0;
}

static int find_doorbells(struct device *dev, struct musubi *musubi)
{
	const char *property = "musubi,doorbells";
	int cells = of_property_count_u32_elems(dev->of_node, property);
	unsigned int i;

	if (cells == -EINVAL)
		return 0; /* No such property: every peer polls. */
	if (cells < 0 || cells % DOORBELL_CELLS || cells > DOORBELL_CELLS * DOORBELLS_MAX)
		return dev_err_probe(dev, -EINVAL, "%s is not a list of doorbells\n", property);
	for (i = 0; i < cells / DOORBELL_CELLS; i++) {
		struct doorbell *bell = &musubi->doorbell[i];
		u32 entry[DOORBELL_CELLS];
		unsigned int cell;

		for (cell = 0; cell < DOORBELL_CELLS; cell++)
			of_property_read_u32_index(dev->of_node, property, i * DOORBELL_CELLS + cell, &entry[cell]);
		bell->domain = entry[0];
		bell->value = entry[3];
		bell->reg = devm_ioremap(dev, (u64)entry[1] << 32 | entry[2], sizeof(u32));
		if (!bell->reg)
			return -ENOMEM;
	}
	musubi->doorbells = cells / DOORBELL_CELLS;
	return 0;
}

/* A property that says what is stored where; without it, nothing is. */
static int find_store(struct device *dev, const char *property, struct store *store)
{
	u32 cells[STORE_CELLS];
	int ret = of_property_read_u32_array(dev->of_node, property, cells, STORE_CELLS);

	if (ret == -EINVAL)
		return 0;
	if (ret)
		return dev_err_probe(dev, ret, "%s is not an address and a value\n", property);
	store->value = cells[2];
	store->reg = devm_ioremap(dev, (u64)cells[0] << 32 | cells[1], sizeof(u32));
	return store->reg ? 0 : -ENOMEM;
}

static int musubi_probe(struct platform_device *pdev)
{
	struct store unmask = { 0 };
	struct device *dev = &pdev->dev;
	struct musubi *musubi = devm_kzalloc(dev, sizeof(*musubi), GFP_KERNEL);
	int ret;

	if (!musubi)
		return -ENOMEM;
	musubi->info.priv = musubi;
	musubi->info.version = "1";
	musubi->info.mmap = musubi_mmap;
	musubi->info.irqcontrol = musubi_ring;
	ret = of_property_read_string(dev->of_node, "musubi,domain", &musubi->info.name);
	if (ret)
		return dev_err_probe(dev, ret, "the node does not say which domain it is for\n");
	ret = find_mappings(pdev, &musubi->info);
	if (ret)
		return ret;
	ret = find_doorbells(dev, musubi);
	if (ret)
		return ret;
	ret = find_store(dev, "musubi,acknowledge", &musubi->acknowledge);
	if (!ret)
		ret = find_store(dev, "musubi,unmask", &unmask);
	if (ret)
		return ret;
	ret = platform_get_irq_optional(pdev, 0);
	if (ret < 0 && ret != -ENXIO)
		return ret;
	/* Without an interrupt the device can still be written to. */
	musubi->info.irq = ret > 0 ? ret : UIO_IRQ_CUSTOM;
	musubi->info.handler = musubi_interrupt;
	ret = devm_uio_register_device(dev, &musubi->info);
	/* Only now is there somebody to acknowledge. */
	if (!ret && unmask.reg)
		writel(unmask.value, unmask.reg);
	return ret;
}

static const struct of_device_id musubi_match[] = {
	{ .compatible = "musubi,uio" },
	{ }
};
MODULE_DEVICE_TABLE(of, musubi_match);

static struct platform_driver musubi_driver = {
	.driver = { .name = "musubi_uio", .of_match_table = musubi_match },
	.probe = musubi_probe,
};
module_platform_driver(musubi_driver);

MODULE_DESCRIPTION("Musubi's memory of one domain, as a UIO device");
MODULE_LICENSE("GPL");
