//! `musubi keys`: a small authority for one system, and certificates of its nodes.
//!
//! What you may rely on: nothing is replaced without `--force`; private keys are readable by their owner only.
//!
//! How it works: [`musubi_transport::keys`] makes and writes; here are names, places and what is said about it.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::Context;
use clap::{Subcommand, ValueHint};
use musubi_config::Nics;
use musubi_transport::NodeId;
use musubi_transport::keys::{
    self, AUTHORITY_CERTIFICATE, Authority, Examined, Identity, NodeFiles, Validity, examine,
};
use musubi_transport::topology::Topology;

use crate::failure::Failure;
use crate::node::names;
use crate::{output, system};

/// Certificates of an authority are valid for this long unless somebody says otherwise: ten years.
const AUTHORITY_DAYS: u32 = 3650;
/// Certificates of nodes likewise: two years.
const NODE_DAYS: u32 = 730;

/// What to do.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
}

const EXAMPLES: &str = "\
A link between machines needs TLS, and each end a certificate from one authority. The directory of keys is what \
the description names: [network] keys = \"keys\". Every node needs ca.crt and its own two files there; ca.key is \
needed for issuing only and should stay where that is done.

Examples:
  musubi keys init --system line.toml
  musubi keys issue --all --system line.toml
  musubi keys issue 31:1016 --days 30        a certificate for `musubi ping` and `musubi node`
  musubi keys show --system line.toml";

#[derive(Debug, Subcommand)]
enum What {
    /// Make the authority: ca.crt and ca.key
    Init(Init),
    /// Make a key and a certificate for nodes
    Issue(Issue),
    /// Show the certificates: whose they are, until when they are valid, whether the authority vouches for them
    Show(Where),
}

/// Which system, and where its keys are.
#[derive(Debug, clap::Args)]
struct Where {
    /// Description of the system [default: the file that the environment variable MUSUBI_SYSTEM names]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    system: Option<PathBuf>,
    /// Directory of the keys [default: what the description says]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    keys: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
struct Init {
    #[command(flatten)]
    place: Where,
    /// For how many days the authority is valid
    #[arg(long, default_value_t = AUTHORITY_DAYS, value_parser = clap::value_parser!(u32).range(1..=36_500))]
    days: u32,
    /// Replace an authority that is there; certificates that it issued are worth nothing then
    #[arg(long)]
    force: bool,
}

#[derive(Debug, clap::Args)]
struct Issue {
    /// The nodes, as DOMAIN:NODE or by name, and NICs by name
    #[arg(value_name = "NODE", required_unless_present = "all")]
    nodes: Vec<String>,
    /// All nodes and NICs of the description that have a TCP address
    #[arg(long, conflicts_with = "nodes")]
    all: bool,
    #[command(flatten)]
    place: Where,
    /// For how many days the certificates are valid
    #[arg(long, default_value_t = NODE_DAYS, value_parser = clap::value_parser!(u32).range(1..=36_500))]
    days: u32,
    /// Replace certificates and keys that are there
    #[arg(long)]
    force: bool,
}

/// Does it.
///
/// # Errors
/// The description has mistakes, or a file cannot be read, made or replaced.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    match &arguments.what {
        What::Init(init) => create(init),
        What::Issue(issue) => sign(issue),
        What::Show(place) => show(place),
    }
}

/// What certificates are for, and where they are.
struct Subject {
    /// The nodes.
    topology: Topology,
    /// The NICs, and the nodes that their processes are.
    nics: Nics,
    keys: PathBuf,
}

impl Where {
    /// The topologies, with the directory of keys in them.
    fn subject(&self) -> anyhow::Result<Subject> {
        let description = system::description(self.system.as_deref())?;
        let (mut topology, mut nics) = (description.topology().clone(), description.nics().clone());
        if let Some(keys) = &self.keys {
            for topology in [&mut topology, &mut nics.topology] {
                topology.network.keys = Some(keys.display().to_string());
            }
        }
        let help = "name it with --keys DIR, or in the description: [network] keys = \"keys\"";
        let keys = topology.network.keys.clone();
        let keys = keys.ok_or_else(|| Failure::new("the system has no directory of keys", help))?;
        Ok(Subject { topology, nics, keys: PathBuf::from(keys) })
    }
}

fn listening(topology: &Topology) -> impl Iterator<Item = (&Topology, NodeId)> {
    let nodes = topology.nodes.iter().filter(|(_, place)| place.tcp.is_some());
    nodes.map(move |(id, _)| (topology, *id))
}

impl Subject {
    /// Every node and process of a NIC that listens.
    fn listening(&self) -> Vec<(&Topology, NodeId)> {
        listening(&self.topology).chain(listening(&self.nics.topology)).collect()
    }

    /// The node of a name, or all processes of the NIC of that name.
    fn named(&self, name: &str) -> Result<Vec<(&Topology, NodeId)>, Failure> {
        let slot = |number: u16, slot: u16| NodeId::of_slot(number, slot).map(|node| (&self.nics.topology, node));
        let nic = (0u16..).zip(&self.nics.entries).find(|(_, entry)| entry.name == name);
        match (names::named(&self.topology, name), nic) {
            (Ok(node), _) => Ok(vec![(&self.topology, node)]),
            (Err(_), Some((number, entry))) => Ok((0..entry.processes).filter_map(|one| slot(number, one)).collect()),
            (Err(failure), None) => Err(failure),
        }
    }
}

fn create(arguments: &Init) -> anyhow::Result<()> {
    let Subject { topology, keys, .. } = arguments.place.subject()?;
    std::fs::create_dir_all(&keys).with_context(|| format!("making the directory {}", keys.display()))?;
    Authority::create(&keys, &topology.system, Validity::days(arguments.days), arguments.force).map_err(advised)?;
    output::print(&format!(
        "authority of system {} for {} days in {}\n",
        topology.system,
        arguments.days,
        keys.display()
    ))
}

fn sign(arguments: &Issue) -> anyhow::Result<()> {
    let subject = arguments.place.subject()?;
    let nodes = match arguments.all {
        true => subject.listening(),
        false => arguments.nodes.iter().map(|name| subject.named(name)).collect::<Result<Vec<_>, _>>()?.concat(),
    };
    if nodes.is_empty() {
        return Err(Failure::new("no node of the system has a TCP address", "name nodes: musubi keys issue 0:1").into());
    }
    let authority = Authority::load(&subject.keys, &subject.topology.system).map_err(|error| {
        let help = "`musubi keys init` makes one; certificates are issued where its ca.crt and ca.key are";
        Failure::new(format!("there is no usable authority: {error}"), help)
    })?;
    for (topology, node) in nodes {
        let files = files(topology, node)?;
        let whose = Identity { system: topology.system.clone(), node };
        authority.issue_to(&whose, &files, Validity::days(arguments.days), arguments.force).map_err(advised)?;
        output::print(&format!("{}: {} for {} days\n", files.certificate.display(), node, arguments.days))?;
    }
    Ok(())
}

/// What is there is replaced only on demand.
fn advised(error: keys::Error) -> anyhow::Error {
    match error {
        keys::Error::Exists(path) => {
            let help = "--force replaces it; `musubi keys issue NODE` makes only that node's";
            Failure::new(format!("{} exists", path.display()), help).into()
        }
        error => error.into(),
    }
}

fn files(topology: &Topology, node: NodeId) -> Result<NodeFiles, Failure> {
    let help = "list it as a [[node]], with a `tcp://` place in `at`";
    NodeFiles::of(topology, node).ok_or_else(|| Failure::new(format!("the system has no node {node}"), help))
}

fn show(place: &Where) -> anyhow::Result<()> {
    let Subject { keys, .. } = place.subject()?;
    let authority = keys.join(AUTHORITY_CERTIFICATE);
    let mut certificates = certificates(&keys).map_err(|error| {
        Failure::new(format!("cannot read {}: {error}", keys.display()), "`musubi keys init` makes the directory")
    })?;
    certificates.retain(|path| *path != authority);
    certificates.sort();
    let mut text = String::new();
    for path in &certificates {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        text.push_str(&format!("{name}: {}\n", described(&examine(path, &authority)?)));
    }
    if certificates.is_empty() {
        text = format!("no certificates in {}; `musubi keys issue` makes them\n", keys.display());
    }
    output::print(&text)
}

fn certificates(directory: &Path) -> std::io::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(directory)?;
    let paths = entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<PathBuf>>>()?;
    Ok(paths.into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "crt")).collect())
}

fn described(certificate: &Examined) -> String {
    let whose = match &certificate.identity {
        Some(identity) => format!("node {} of {}", identity.node, identity.system),
        None => "of no node".to_owned(),
    };
    let until = certificate.validity.map(|validity| time(validity.until)).unwrap_or_default();
    match &certificate.good {
        Ok(()) => format!("{whose}, valid until {until}"),
        Err(why) => format!("{whose}, until {until}, NOT accepted: {why}"),
    }
}

fn time(time: SystemTime) -> String {
    humantime::format_rfc3339_seconds(time).to_string()
}
