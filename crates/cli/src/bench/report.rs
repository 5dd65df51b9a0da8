//! What a bench found, as a table or as JSON.

use super::process::Measured;
use crate::exit::Failure;
use crate::text;
use serde_json::{Value, json};

/// A client and what it took.
pub(super) struct Row {
    pub(super) name: String,
    pub(super) measured: Measured,
}

impl Row {
    fn rate(&self) -> f64 {
        self.measured.records as f64 / self.measured.seconds.max(1e-9)
    }

    fn transactions_rate(&self) -> Option<f64> {
        self.measured.transactions.map(|transactions| transactions as f64 / self.measured.seconds.max(1e-9))
    }

    fn per_million(&self) -> Option<f64> {
        self.measured.cpu_seconds.map(|cpu| cpu * 1e6 / self.measured.records.max(1) as f64)
    }

    fn per_transaction(&self) -> Option<f64> {
        self.measured.transactions.map(|transactions| self.measured.records as f64 / transactions.max(1) as f64)
    }

    fn cpu_ratio(&self, first: &Row) -> Option<f64> {
        self.per_million().zip(first.per_million()).map(|(cpu, ours)| cpu / ours.max(1e-9))
    }

    fn json(&self, first: &Row) -> Value {
        json!({
            "client": self.name, "records": self.measured.records, "seconds": self.measured.seconds,
            "records_per_second": self.rate(), "cpu_seconds_per_million": self.per_million(),
            "peak_memory_bytes": self.measured.peak_bytes, "cpu_ratio": self.cpu_ratio(first),
            "records_per_cpu_second_ratio": self.cpu_ratio(first).map(|ratio| 1.0 / ratio),
            "rate_ratio": first.rate() / self.rate(),
        })
    }
}

/// Rates and costs of records.
pub(super) fn records(as_json: bool, run: Value, rows: &[Row]) -> Result<(), Failure> {
    let first = rows.first().ok_or_else(|| Failure::new("nothing was measured"))?;
    if as_json {
        let clients: Vec<Value> = rows.iter().map(|row| row.json(first)).collect();
        return text::print_json(&json!({ "run": run, "clients": clients }));
    }
    let mut table = vec![text::row([&"CLIENT", &"RECORDS/S", &"CPU S/MILLION", &"CPU RATIO", &"PEAK MIB"])];
    for row in rows {
        let cells = [
            format!("{:.0}", row.rate()),
            shown(row.per_million(), 3),
            shown(row.cpu_ratio(first), 2),
            shown(row.measured.peak_bytes.map(|bytes| bytes as f64 / f64::from(1 << 20)), 1),
        ];
        table.push(text::row([&row.name as &dyn std::fmt::Display, &cells[0], &cells[1], &cells[2], &cells[3]]));
    }
    text::table(&mut std::io::stdout(), &table)
}

/// Rates and costs of transactions, by their size.
pub(super) fn transactions(as_json: bool, run: Value, groups: &[(u64, Vec<Row>)]) -> Result<(), Failure> {
    if as_json {
        let one = |row: &Row, first: &Row| {
            let mut all = row.json(first);
            all["transactions"] = json!(row.measured.transactions);
            all["transactions_per_second"] = json!(row.transactions_rate());
            all["transactions_ratio"] = json!(ratio(row, first));
            all["median_transaction_ms"] = json!(row.measured.median_transaction_ms);
            all
        };
        let group = |(records, rows): &(u64, Vec<Row>)| {
            let clients: Vec<Value> = rows.iter().map(|row| one(row, &rows[0])).collect();
            json!({ "records_per_transaction": records, "clients": clients })
        };
        return text::print_json(&json!({ "run": run, "sizes": groups.iter().map(group).collect::<Vec<Value>>() }));
    }
    let head =
        ["RECORDS", "CLIENT", "TRANSACTIONS/S", "RATIO", "MEDIAN MS", "RECORDS EACH", "CPU S/MILLION", "CPU RATIO"];
    let mut table = vec![text::row(head.each_ref().map(|cell| cell as &dyn std::fmt::Display))];
    for (records, rows) in groups {
        for row in rows {
            let first = &rows[0];
            let cells = [
                records.to_string(),
                row.name.clone(),
                shown(row.transactions_rate(), 0),
                shown(ratio(row, first), 2),
                shown(row.measured.median_transaction_ms, 2),
                shown(row.per_transaction(), 1),
                shown(row.per_million(), 2),
                shown(row.cpu_ratio(first), 2),
            ];
            table.push(text::row(cells.each_ref().map(|cell| cell as &dyn std::fmt::Display)));
        }
    }
    text::table(&mut std::io::stdout(), &table)
}

/// How many times as fast as the first.
fn ratio(row: &Row, first: &Row) -> Option<f64> {
    row.transactions_rate().zip(first.transactions_rate()).map(|(rate, ours)| rate / ours.max(1e-9))
}

fn shown(figure: Option<f64>, digits: usize) -> String {
    figure.map_or_else(|| "-".into(), |f| format!("{f:.digits$}"))
}
