//! What a case is: its name, the rules it checks, what the cluster must offer for it.

use crate::expect::Check;
use crate::lab::Lab;
use kafka_share_messages::ApiKey;
use std::fmt;
use std::pin::Pin;

/// A running case.
pub(crate) type Running = Pin<Box<dyn Future<Output = Check> + Send>>;

/// Something that the cluster must offer for a case to make sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Need {
    /// An API in this version.
    Api(ApiKey, i16),
    /// A finalised feature, at this level at least.
    Feature(&'static str, i16),
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Need::Api(key, version) => write!(f, "{key} version {version}"),
            Need::Feature(name, level) => write!(f, "{name} {level}"),
        }
    }
}

/// One check of a broker.
#[derive(Clone, Copy)]
pub struct Case {
    /// Name, unique among all cases.
    pub name: &'static str,
    /// Ids of the rules it checks.
    pub ids: &'static [&'static str],
    /// Number of the KIP that the first rule comes from.
    pub kip: u16,
    /// What the cluster must offer.
    pub needs: &'static [Need],
    pub(crate) run: fn(Lab) -> Running,
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Case").field("name", &self.name).field("ids", &self.ids).finish_non_exhaustive()
    }
}

/// Lists the cases of a module: `name(kip, needs) ids..;` runs the function of that name, and
/// `name(kip, needs) ids.. => function(arguments);` another one, for families of rules that differ by a parameter.
macro_rules! list {
    (@run $name:ident) => {
        |lab| Box::pin($name(lab))
    };
    (@run $name:ident $function:ident($($argument:expr),*)) => {
        |lab| Box::pin($function(lab, $($argument),*))
    };
    ($($name:ident($kip:literal, $needs:expr) $($id:literal)+ $(=> $function:ident($($argument:expr),* $(,)?))?;)+) => {
        /// The cases of this module.
        pub(super) const CASES: &[$crate::case::Case] = &[$(
            $crate::case::Case {
                name: stringify!($name),
                ids: &[$($id),+],
                kip: $kip,
                needs: $needs,
                run: list!(@run $name $($function($($argument),*))?),
            },
        )+];
    };
}
pub(crate) use list;
