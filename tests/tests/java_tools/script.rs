//! What the tools are asked to do, what they must say on any broker, and what of it differs from run to run.

use kafka_share::{ProducerRecord, TransactionalProducer};
use kafka_share_tests::tools::{Printed, Tools};
use std::time::Duration;
use tokio::runtime::Runtime;

const TOPICS: &str = "org.apache.kafka.tools.TopicCommand";
const CONFIGS: &str = "org.apache.kafka.tools.ConfigCommand";
const PRODUCE: &str = "org.apache.kafka.tools.ProducerPerformance";
const CONSOLE: &str = "org.apache.kafka.tools.consumer.ConsoleShareConsumer";
const VERIFIABLE: &str = "org.apache.kafka.tools.VerifiableShareConsumer";
const PERFORMANCE: &str = "org.apache.kafka.tools.ShareConsumerPerformance";
const SHARE_GROUPS: &str = "org.apache.kafka.tools.consumer.group.ShareGroupCommand";
const GROUPS: &str = "org.apache.kafka.tools.GroupsCommand";
const TRANSACTIONS: &str = "org.apache.kafka.tools.TransactionsCommand";

/// Each step's command and what it printed, without what differs from run to run.
pub(crate) fn play(bootstrap: &str) -> Vec<(String, Printed)> {
    let mut player = Player { bootstrap: bootstrap.to_owned(), tools: Tools::start("4.4.0"), played: Vec::new() };
    player.topics_and_configs();
    player.share_consumers();
    player.share_groups();
    player.transactions();
    player.says(TOPICS, "--delete --topic jobs", "");
    player.refused(TOPICS, "--describe --topic jobs", 1, "does not exist");
    player.played
}

struct Player {
    bootstrap: String,
    tools: Tools,
    played: Vec<(String, Printed)>,
}

impl Player {
    /// Runs a tool, which must succeed and print this text among others. All of what it prints is compared.
    fn says(&mut self, tool: &str, arguments: &str, text: &str) {
        let (step, printed) = self.run(tool, arguments, 0, text);
        let text = steady(&printed.text, &self.bootstrap);
        self.played.push((step, Printed { text, ..printed }));
    }

    /// Runs a tool that is refused; some tools exit with 0 then. The wording of a refusal is each broker's own.
    fn refused(&mut self, tool: &str, arguments: &str, code: i32, text: &str) {
        let (step, printed) = self.run(tool, arguments, code, text);
        self.played.push((step, Printed { text: String::new(), ..printed }));
    }

    fn run(&mut self, tool: &str, arguments: &str, code: i32, text: &str) -> (String, Printed) {
        let step = format!("{tool} {arguments}");
        let bootstrap = self.bootstrap.clone();
        let mut words = vec![tool, "--bootstrap-server", &bootstrap];
        words.extend(arguments.split(' '));
        let printed = self.tools.run(&words);
        assert!(printed.code == code && printed.text.contains(text), "{step}: wanted {code} {text:?}: {printed:?}");
        (step, printed)
    }

    fn topics_and_configs(&mut self) {
        self.says(TOPICS, "--create --topic jobs --partitions 1 --config retention.ms=7200000", "Created topic");
        self.refused(TOPICS, "--create --topic jobs", 1, "already exists");
        self.refused(TOPICS, "--create --topic no/slash", 1, "Topic name is invalid");
        self.says(TOPICS, "--create --topic wide --partitions 3", "Created topic");
        self.says(TOPICS, "--alter --topic wide --partitions 4", "");
        self.refused(TOPICS, "--alter --topic wide --partitions 2", 1, "");
        self.says(TOPICS, "--list", "wide");
        self.says(TOPICS, "--describe --topic wide", "PartitionCount: 4");
        self.says(CONFIGS, "--alter --entity-type topics --entity-name jobs --add-config max.message.bytes=500000", "");
        self.says(CONFIGS, "--describe --entity-type topics --entity-name jobs", "max.message.bytes=500000");
        self.says(CONFIGS, "--alter --entity-type topics --entity-name jobs --delete-config retention.ms", "");
        self.says(CONFIGS, "--describe --entity-type topics --entity-name jobs", "max.message.bytes=500000");
        self.refused(CONFIGS, "--alter --entity-type topics --entity-name jobs --add-config retention.ms=soon", 1, "");
        let settings = "share.auto.offset.reset=earliest,share.record.lock.duration.ms=15000";
        let alter = "--alter --entity-type groups --entity-name workers --add-config";
        self.says(CONFIGS, &format!("{alter} {settings}"), "Completed updating config for group workers");
        self.refused(CONFIGS, &format!("{alter} share.record.lock.duration.ms=99000000"), 1, "1000 to 60000");
        self.refused(CONFIGS, &format!("{alter} share.isolation.level=none"), 1, "");
        self.says(CONFIGS, "--describe --entity-type groups", "share.record.lock.duration.ms=15000");
        self.says(CONFIGS, "--describe --entity-type groups --entity-name workers --all", "delivery.count.limit=5");
    }

    fn share_consumers(&mut self) {
        self.says(PRODUCE, "--topic jobs --num-records 40 --record-size 20 --throughput -1", "40 records sent");
        let show = "--formatter-property print.offset=true --formatter-property print.delivery=true";
        let console = format!("--topic jobs --group workers --timeout-ms 20000 {show} --max-messages");
        self.says(CONSOLE, &format!("{console} 10"), "Processed a total of 10 messages");
        self.says(CONSOLE, &format!("{console} 5 --release"), "Offset:14\tDelivery:");
        self.says(CONSOLE, &format!("{console} 5 --reject"), "Offset:14\tDelivery:");
        let group = "--topic jobs --group-id workers --offset-reset-strategy earliest";
        let pattern = "--acknowledgement-mode sync --ack-pattern accept,release,renew,reject --max-messages 25";
        self.says(VERIFIABLE, &format!("{group} {pattern}"), "\"success\":true");
        // Another group, from the end on: nothing comes. (ShareConsumerPerformance gives itself 100 ms beyond its timeout, and
        // fails where a busy machine takes longer.)
        self.says(CONSOLE, "--topic jobs --group second --timeout-ms 10000", "Processed a total of 0 messages");
    }

    fn share_groups(&mut self) {
        self.says(SHARE_GROUPS, "--list", "workers");
        self.says(SHARE_GROUPS, "--list --state", "Empty");
        self.says(GROUPS, "--list --share", "workers");
        self.says(SHARE_GROUPS, "--describe --group workers", "jobs");
        self.says(SHARE_GROUPS, "--describe --group workers --offsets --verbose", "LEADER-EPOCH");
        self.says(SHARE_GROUPS, "--describe --group workers --members --verbose", "no active members");
        self.says(SHARE_GROUPS, "--describe --group workers --state", "Empty");
        self.refused(SHARE_GROUPS, "--describe --group nobody", 0, "Group nobody not found");
        let reset = "--reset-offsets --group workers --topic jobs";
        self.says(SHARE_GROUPS, &format!("{reset} --to-earliest --dry-run"), "NEW-OFFSET");
        self.says(SHARE_GROUPS, &format!("{reset} --to-latest --execute"), "40");
        self.says(SHARE_GROUPS, "--describe --group workers", "40");
        self.says(SHARE_GROUPS, &format!("{reset} --to-offset 10 --execute"), "10");
        self.says(PERFORMANCE, "--topic jobs --group workers --num-records 30 --timeout 20000", ", 30, ");
        self.says(SHARE_GROUPS, "--describe --group workers", "jobs");
        self.says(SHARE_GROUPS, "--describe --group second", "jobs");
        self.says(SHARE_GROUPS, "--delete-offsets --group workers --topic jobs", "Successful");
        self.says(SHARE_GROUPS, "--delete --group workers", "was successful");
        self.refused(SHARE_GROUPS, "--delete --group workers", 0, "");
        self.refused(SHARE_GROUPS, "--describe --group workers", 0, "not found");
    }

    /// Two transactions are left open: one is ended by its transactional id, one as a hanging one by its start offset.
    fn transactions(&mut self) {
        let runtime = Runtime::new().expect("a runtime");
        let _open = [open(&runtime, &self.bootstrap, "first", 0), open(&runtime, &self.bootstrap, "second", 1)];
        self.says(TRANSACTIONS, "list", "first");
        self.says(TRANSACTIONS, "list --transactional-id-pattern f.*t", "first");
        self.says(TRANSACTIONS, "list --duration-filter 3600000", "TransactionalId");
        self.says(TRANSACTIONS, "describe --transactional-id first", "wide-0");
        self.refused(TRANSACTIONS, "describe --transactional-id third", 1, "could not be found");
        self.says(TRANSACTIONS, "describe-producers --topic wide --partition 0", "0");
        self.says(TRANSACTIONS, "find-hanging --broker-id 1", "StartOffset");
        self.says(TRANSACTIONS, "forceTerminateTransaction --transactionalId first", "");
        self.says(TRANSACTIONS, "abort --topic wide --partition 1 --start-offset 0", "");
        self.refused(TRANSACTIONS, "abort --topic wide --partition 1 --start-offset 7", 1, "");
        self.says(TRANSACTIONS, "describe-producers --topic wide --partition 1", "None");
        self.says(TRANSACTIONS, "describe --transactional-id first", "Empty");
    }
}

fn open(runtime: &Runtime, bootstrap: &str, id: &str, partition: i32) -> TransactionalProducer {
    runtime.block_on(async {
        // Longer than all the tools take to start, one after the other.
        let builder = TransactionalProducer::builder(bootstrap, id).transaction_timeout(Duration::from_secs(600));
        let producer = builder.build().expect("a producer");
        producer.init_transactions().await.expect("init");
        producer.begin_transaction().expect("begin");
        let record = ProducerRecord::new("wide").partition(partition).value(&b"open"[..]);
        producer.send(record).await.expect("send").await.expect("delivered");
        producer
    })
}

/// What differs from run to run: delivery counts (a real broker whose group has no member may forget some), how records are
/// cut into polls, measured figures, times, ids, addresses, the order of a set.
fn steady(text: &str, bootstrap: &str) -> String {
    let text = text.replace(bootstrap, "BOOTSTRAP");
    let measured = |line: &str| line.contains("records sent") || line.starts_with("20") && line.split(", ").count() > 6;
    let ended = |line: &str| line == "null" || line.starts_with("tools.Main");
    let mut lines: Vec<String> = text.lines().filter(|line| !measured(line) && !ended(line)).map(steady_line).collect();
    lines.dedup();
    lines.join("\n")
}

fn steady_line(line: &str) -> String {
    if let Some((before, _)) = line.split_once("Configs: ") {
        // The settings are compared by the tool that is made for them: a real cluster adds min.insync.replicas, which
        // it sets for the whole cluster.
        let id = before.split("TopicId: ").nth(1).and_then(|rest| rest.split('\t').next()).unwrap_or_default();
        return before.replace(id, "#");
    }
    if line.starts_with("{\"timestamp\"") {
        let event = line.split_once(',').map_or(line, |(_, event)| event);
        let name = event.split_once(",\"count\"").map_or(event, |(name, _)| name);
        return name.to_owned() + if event.contains("\"success\":false") { " failed" } else { "" };
    }
    if let Some((before, after)) = line.split_once("Delivery:") {
        return before.to_owned() + after.split_once('\t').map_or("", |(_, rest)| rest);
    }
    let mut columns: Vec<&str> = line.split('\t').map(str::trim_end).collect();
    if columns.len() == 10 && columns[4] == "Ongoing" {
        // Start and duration of a transaction.
        columns.drain(6..8);
    }
    let time = |column: &&str| column.len() == 13 && column.bytes().all(|b| b.is_ascii_digit());
    columns.iter_mut().filter(|column| time(column)).for_each(|column| *column = "#");
    columns.join("\t")
}
