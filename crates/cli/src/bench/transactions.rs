//! `kshare bench transactions`: share-consume, produce, commit and acknowledge, in transactions.

use super::CommonArgs;
use super::place::{self, Client, Place};
use super::report::{self, Row};
use super::rounds;
use crate::exit::Failure;
use clap::Args;
use kafka_share::transactional_acknowledgements_offered;
use serde_json::json;
use std::time::Instant;

/// Options of `kshare bench transactions`.
#[derive(Debug, Args)]
#[command(
    after_help = "Fills a topic, and has each client consume it in a share group of its own: a poll of R records (share.acquire.mode=record_limit,
Kafka 4.2), R records written to another topic, the transaction committed, then the records of the poll accepted. kshare is
measured with acknowledgements in the transaction too: as kshare-ledger, by the acknowledgement ledger, and where the
cluster takes them (KIP-1289: the embedded broker) as kshare-native. The rate counts from the first records to the end of
the last commit; MEDIAN MS is the time from a poll's return to the end of the commit.

A peer gets seven more arguments: the word transactions, bootstrap servers, topic, group (to be used as transactional.id too),
the topic to write to, R and the number of records in all. It prints {\"records\": N, \"seconds\": S, \"transactions\": T}, and
may print \"median_transaction_ms\".

Examples:
  kshare bench transactions
  kshare bench transactions --records-per-transaction 100 --rounds 5
  kshare bench transactions --bootstrap-server HOST:9092 --peer krafka=./krafka-peer"
)]
pub(super) struct TransactionsArgs {
    #[command(flatten)]
    common: CommonArgs,
    /// Records of a transaction, R; a list is measured one after the other
    #[arg(long, value_name = "R", value_delimiter = ',', default_value = "1,100,1000",
        value_parser = clap::value_parser!(u64).range(1..=100_000))]
    records_per_transaction: Vec<u64>,
    /// Transactions of each client, where each poll brings R records
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    transactions: u64,
    /// Records that this project's client fetches ahead while it commits, without record_limit then; locks run meanwhile
    #[arg(long, value_name = "N", default_value_t = 0)]
    prefetch: usize,
}

pub(super) async fn run(args: TransactionsArgs) -> Result<(), Failure> {
    let mut place = Place::new(&args.common).await?;
    let clients = clients(&args, &mut place).await?;
    let mut groups = Vec::new();
    for &records in &args.records_per_transaction {
        let rows = transact(&args, &mut place, &clients, records).await;
        place.clean().await;
        match rows {
            Ok(rows) => groups.push((records, rows)),
            Err(failure) => {
                place.clean_ledger().await;
                return Err(failure);
            }
        }
    }
    place.clean_ledger().await;
    let what = json!({
        "transactions": args.transactions, "size": args.common.size, "partitions": args.common.partitions,
        "prefetch": args.prefetch,
    });
    report::transactions(args.common.json, what, &groups)
}

async fn clients(args: &TransactionsArgs, place: &mut Place) -> Result<Vec<Client>, Failure> {
    let prefetch = format!("--prefetch={}", args.prefetch);
    let mut clients = place.own("kshare", std::slice::from_ref(&prefetch))?;
    let cluster = place.admin.cluster();
    let features = cluster.features(Instant::now() + cluster.config().api_timeout()).await?;
    if transactional_acknowledgements_offered(&features) {
        clients.extend(place.own("kshare-native", &[prefetch.clone(), "--native".to_owned()])?);
    }
    let ledger = place.ledger().await?;
    clients.extend(place.own("kshare-ledger", &[prefetch, format!("--ledger={ledger}")])?);
    clients.extend(place::peers(&args.common));
    Ok(clients)
}

async fn transact(
    args: &TransactionsArgs,
    place: &mut Place,
    clients: &[Client],
    records: u64,
) -> Result<Vec<Row>, Failure> {
    let (input, output) = (format!("{}-in-{records}", place.name), format!("{}-out-{records}", place.name));
    place.topic(&input, args.common.partitions).await?;
    place.topic(&output, args.common.partitions).await?;
    let all = records.saturating_mul(args.transactions);
    place.fill(&input, all, &args.common).await?;
    rounds::in_turns(&args.common, place, clients, async |place, client, round| {
        let group = format!("{input}-{}-{round}", client.0);
        place.group(&group).await?;
        let more = [input.clone(), group, output.clone(), records.to_string(), all.to_string()];
        place.measure(client, "transactions", &more).await
    })
    .await
}
