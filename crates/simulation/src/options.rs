//! Command line of the models.

use clap::{Args, Subcommand, ValueEnum};
use kafka_share_simulation::faults::{Fault, Kinds};
use kafka_share_simulation::ledger::{Config, Mode, Planted, SingleBatches};
use kafka_share_simulation::native::{NativeConfig, NativePlanted};

#[derive(Subcommand)]
pub(super) enum Command {
    /// Explores a model to the end and says whether all holds.
    Model(Model),
}

#[derive(Args)]
pub(super) struct Model {
    /// Which backend's model.
    #[arg(long, value_enum, default_value = "both")]
    pub(super) backend: Backend,
    /// Members, 1 to 3.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=3))]
    members: u8,
    /// What the members use, separated by commas: ledger (the default), both or native.
    #[arg(long, value_delimiter = ',')]
    modes: Vec<String>,
    /// Faults in a run.
    #[arg(long, default_value_t = 2)]
    faults: u8,
    /// Kinds of faults, separated by commas: crash, expire, leader-move, timeout, fence, lost-answer, give-up,
    /// second-marker.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Times that compaction passes a reader that is behind.
    #[arg(long, default_value_t = 1)]
    compactions: u8,
    /// Records that a member may hold at once, 1 to 3.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=3))]
    held: u8,
    /// transaction.version of the cluster, 1 or 2.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=2))]
    transaction_version: u8,
    /// When a fetch of the ledger brings one batch only.
    #[arg(long, value_enum, default_value = "never")]
    single_batches: Singles,
    /// Leaves step 0 out: records with an open intent are processed.
    #[arg(long)]
    no_set_aside: bool,
    /// Compaction may leave emptied control batches.
    #[arg(long)]
    empty_markers: bool,
    /// Members tombstone the intents of others below the start offset.
    #[arg(long)]
    foreign_tombstones: bool,
    /// Tombstones may be written before their acknowledgements are confirmed.
    #[arg(long)]
    early_tombstones: bool,
    /// Breaks one rule, in the smallest model that shows it: the other options do not count.
    #[arg(long)]
    pub(super) plant: Option<String>,
    /// Most states; each takes about 60 bytes.
    #[arg(long, default_value_t = 200_000_000)]
    pub(super) states: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Backend {
    Ledger,
    Native,
    Both,
}

#[derive(Clone, Copy, ValueEnum)]
enum Singles {
    Never,
    AtStart,
    Always,
}

impl Model {
    pub(super) fn ledger(&self) -> Result<Config, String> {
        let single_batches = match self.single_batches {
            Singles::Never => SingleBatches::Never,
            Singles::AtStart => SingleBatches::AtStart,
            Singles::Always => SingleBatches::Always,
        };
        Ok(Config {
            members: self.members,
            modes: self.modes()?,
            faults: self.faults,
            kinds: self.kinds()?,
            compactions: self.compactions,
            held: self.held,
            transaction_version: self.transaction_version,
            set_aside: !self.no_set_aside,
            single_batches,
            empty_markers: self.empty_markers,
            foreign_tombstones: self.foreign_tombstones,
            early_tombstones: self.early_tombstones,
            planted: None,
        })
    }

    pub(super) fn native(&self) -> Result<NativeConfig, String> {
        let (members, faults, transaction_version) = (self.members, self.faults, self.transaction_version);
        Ok(NativeConfig { members, faults, kinds: self.kinds()?, transaction_version, planted: None })
    }

    fn modes(&self) -> Result<[Mode; 3], String> {
        let mut modes = [Mode::Ledger; 3];
        for (mode, name) in modes.iter_mut().zip(&self.modes) {
            *mode = match name.as_str() {
                "ledger" => Mode::Ledger,
                "both" => Mode::Both,
                "native" => Mode::Native,
                _ => return Err(format!("there is no mode {name}")),
            };
        }
        Ok(modes)
    }

    fn kinds(&self) -> Result<Kinds, String> {
        if self.only.is_empty() {
            return Ok(Kinds::ALL);
        }
        let named = |name: &String| {
            let found = Fault::ALL.iter().find(|(_, known)| known == name);
            found.map(|(kind, _)| *kind).ok_or_else(|| format!("there is no kind of fault {name}"))
        };
        Ok(Kinds::of(&self.only.iter().map(named).collect::<Result<Vec<_>, _>>()?))
    }
}

/// The name of a variant as it is written on the command line.
fn kebab(debug: &str) -> String {
    let mut name = String::new();
    for letter in debug.chars() {
        if letter.is_uppercase() && !name.is_empty() {
            name.push('-');
        }
        name.push(letter.to_ascii_lowercase());
    }
    name
}

pub(super) fn ledger_planted(name: &str) -> Option<Planted> {
    Planted::ALL.into_iter().find(|planted| kebab(&format!("{planted:?}")) == name)
}

pub(super) fn native_planted(name: &str) -> Option<NativePlanted> {
    let name = name.strip_prefix("native-")?;
    NativePlanted::ALL.into_iter().find(|planted| kebab(&format!("{planted:?}")) == name)
}

pub(super) fn planted_names() -> Vec<String> {
    let ledger = Planted::ALL.iter().map(|planted| kebab(&format!("{planted:?}")));
    let native = NativePlanted::ALL.iter().map(|planted| format!("native-{}", kebab(&format!("{planted:?}"))));
    ledger.chain(native).collect()
}
