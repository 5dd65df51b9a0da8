//! The table or JSON object at the end, and the verdict.

use super::state::Progress;
use super::verify::Counts;
use super::{Plan, Semantics};
use crate::exit::Failure;
use serde_json::json;
use std::sync::atomic::Ordering;

pub(super) struct Report<'a> {
    pub(super) plan: &'a Plan,
    pub(super) progress: &'a Progress,
    pub(super) counts: Counts,
    pub(super) seconds: f64,
    pub(super) input_records: usize,
}

impl Report<'_> {
    fn rate(&self) -> f64 {
        self.input_records as f64 / self.seconds.max(1e-9)
    }

    pub(super) fn print(&self, as_json: bool) {
        let p = self.progress;
        let count = |c: &std::sync::atomic::AtomicU64| c.load(Ordering::Relaxed);
        if as_json {
            let object = json!({
                "input_records": self.input_records,
                "output_records": self.counts.output,
                "missing": self.counts.missing,
                "missing_after_many_deliveries": self.counts.given_up,
                "duplicated": self.counts.duplicated,
                "transactions_committed": count(&p.commits),
                "transactions_aborted": count(&p.aborts),
                "redelivered": count(&p.redelivered),
                "chaos_events": count(&p.chaos),
                "kills": count(&p.kills),
                "stops": count(&p.stops),
                "long_stops": count(&p.long_stops),
                "long_stops_after_poll": count(&p.long_stops_after_poll),
                "other_ends": count(&p.deaths),
                "fences": count(&p.fences),
                "ledger_restarts": count(&p.ledger_restarts),
                "done_elsewhere": count(&p.done_elsewhere),
                "seconds": (self.seconds * 1000.0).round() / 1000.0,
                "records_per_second": self.rate().round(),
                "semantics": self.plan.semantics.name(),
                "backend": self.plan.backend,
                "seed": self.plan.seed,
                "input_topic": self.plan.input_topic,
                "output_topic": self.plan.output_topic,
                "group": self.plan.group,
            });
            println!("{object}");
            return;
        }
        println!("{:<24} {}", "semantics", self.plan.semantics.name());
        println!("{:<24} {}", "backend", self.plan.backend);
        for (name, value) in [
            ("input records", self.input_records as u64),
            ("output records", self.counts.output),
            ("missing", self.counts.missing),
            ("  after many deliveries", self.counts.given_up),
            ("duplicated", self.counts.duplicated),
            ("transactions committed", count(&p.commits)),
            ("transactions aborted", count(&p.aborts)),
            ("redelivered", count(&p.redelivered)),
            ("chaos events", count(&p.chaos)),
            ("processes killed", count(&p.kills)),
            ("processes stopped", count(&p.stops)),
            ("  for long", count(&p.long_stops)),
            ("  right after a poll", count(&p.long_stops_after_poll)),
            ("processes that failed", count(&p.deaths)),
            ("producers fenced", count(&p.fences)),
            ("ledger read anew", count(&p.ledger_restarts)),
            ("done by others", count(&p.done_elsewhere)),
        ] {
            println!("{name:<24} {value}");
        }
        println!("{:<24} {:.2}", "seconds", self.seconds);
        println!("{:<24} {:.0}", "records/s", self.rate());
    }

    /// Whether the counts hold.
    pub(super) fn verdict(&self) -> Result<(), Failure> {
        let Counts { missing, given_up, duplicated, foreign, .. } = self.counts;
        if foreign > 0 {
            return Err(Failure::new(format_args!("{foreign} output records are not what their input should become")));
        }
        if missing > 0 {
            return Err(Failure::new(format_args!(
                "{missing} records are missing in the output, {given_up} of which had been delivered four times or more, and were \
                 given up by the broker if that is its limit (share.delivery.count.limit) (seed {})",
                self.plan.seed
            )));
        }
        if duplicated > 0 && self.plan.semantics == Semantics::ExactlyOnce {
            return Err(Failure::new(format_args!(
                "{duplicated} records are in the output more than once (seed {})",
                self.plan.seed
            )));
        }
        Ok(())
    }
}
