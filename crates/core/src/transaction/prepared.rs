//! A prepared transaction on paper: what another process needs to end it (KIP-1310, KIP-939).

use super::ProducerIdentity;
use std::fmt;
use std::str::FromStr;

/// First part of the text form; the number is the version of the format.
const MAGIC: &str = "kafka-share-txn/1";
/// Longest text that is read: the transactional id, every byte escaped, and the other parts.
const MAX_TEXT: usize = 3 * i16::MAX as usize + 1024;

/// A transaction whose records and acknowledgements are all with the brokers: only its end is missing, and whoever has
/// this can bring it about, as long as the coordinator keeps the transaction (`transaction.timeout.ms` from its begin).
///
/// Its text form ([`fmt::Display`], [`FromStr`]) is one line of letters, digits and `/:.-_%`, of a fixed format with a
/// checksum, to be kept in a file, a database or a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreparedTransaction {
    /// Id of the cluster; empty where the brokers name none.
    pub cluster_id: String,
    /// `transactional.id`
    pub transactional_id: String,
    /// Producer id and epoch.
    pub identity: ProducerIdentity,
    /// transaction.version 2 or later.
    pub v2: bool,
    /// Whether the coordinator knows of it; not where nothing was sent.
    pub started: bool,
    /// When the coordinator aborts it, in milliseconds since 1970, by this machine's clock; -1 where it never does.
    pub expires_ms: i64,
}

/// A text that is no prepared transaction.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a prepared transaction: {0}")]
pub struct DamagedTransaction(pub(super) &'static str);

impl fmt::Display for PreparedTransaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let body = self.body();
        write!(f, "{body}:{:08x}", checksum(&body))
    }
}

impl PreparedTransaction {
    fn body(&self) -> String {
        format!(
            "{MAGIC}:{}:{}:{}:{}:{}{}:{}",
            escape(&self.cluster_id),
            escape(&self.transactional_id),
            self.identity.id,
            self.identity.epoch,
            if self.v2 { "v2" } else { "v1" },
            if self.started { "" } else { "-empty" },
            self.expires_ms,
        )
    }
}

impl FromStr for PreparedTransaction {
    type Err = DamagedTransaction;

    fn from_str(text: &str) -> Result<Self, DamagedTransaction> {
        let text = text.trim();
        if text.len() > MAX_TEXT {
            return Err(DamagedTransaction("it is too long"));
        }
        if !text.starts_with(MAGIC) {
            return Err(DamagedTransaction("it does not begin with kafka-share-txn/1"));
        }
        let (body, sum) = text.rsplit_once(':').ok_or(DamagedTransaction("it is cut short"))?;
        if sum.len() != 8 || u32::from_str_radix(sum, 16) != Ok(checksum(body)) {
            return Err(DamagedTransaction("its checksum does not fit: it is cut short or was changed"));
        }
        let parts: Vec<&str> = body.split(':').collect();
        let [magic, cluster, id, producer, epoch, mode, expires] = parts[..] else {
            return Err(DamagedTransaction("it does not have eight parts"));
        };
        if magic != MAGIC {
            return Err(DamagedTransaction("it is of another format than kafka-share-txn/1"));
        }
        let (v2, started) = match mode {
            "v1" => (false, true),
            "v2" => (true, true),
            "v1-empty" => (false, false),
            "v2-empty" => (true, false),
            _ => return Err(DamagedTransaction("its transaction version is not known")),
        };
        let number = |_| DamagedTransaction("a number in it cannot be read");
        let prepared = PreparedTransaction {
            cluster_id: unescape(cluster)?,
            transactional_id: unescape(id)?,
            identity: ProducerIdentity { id: producer.parse().map_err(number)?, epoch: epoch.parse().map_err(number)? },
            v2,
            started,
            expires_ms: expires.parse().map_err(number)?,
        };
        if prepared.transactional_id.is_empty() || prepared.identity.id < 0 || prepared.identity.epoch < 0 {
            return Err(DamagedTransaction("it names no producer"));
        }
        Ok(prepared)
    }
}

/// CRC-32 as of IEEE 802.3. A few hundred bytes, once a transaction: no table is worth it.
fn checksum(text: &str) -> u32 {
    let step = |crc: u32, _| if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 };
    !text.bytes().fold(u32::MAX, |crc, byte| (0..8).fold(crc ^ u32::from(byte), step))
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'_' | b'-' => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02x}")),
        }
    }
    out
}

fn unescape(text: &str) -> Result<String, DamagedTransaction> {
    let damaged = DamagedTransaction("an escape in it cannot be read");
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let digits = [bytes.next(), bytes.next()].map(|b| b.and_then(|b| char::from(b).to_digit(16)));
        let [Some(high), Some(low)] = digits else { return Err(damaged) };
        out.push((high * 16 + low) as u8);
    }
    String::from_utf8(out).map_err(|_| damaged)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepared() -> PreparedTransaction {
        PreparedTransaction {
            cluster_id: "4L6g3nShT-eMCtK--X86sw".into(),
            transactional_id: "orders: 100 % für \n alle".into(),
            identity: ProducerIdentity { id: 4_000_000_017, epoch: 32_766 },
            v2: true,
            started: true,
            expires_ms: 1_790_000_000_000,
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        for (v2, started) in [(true, true), (true, false), (false, true), (false, false)] {
            let prepared = PreparedTransaction { v2, started, ..prepared() };
            let text = prepared.to_string();
            assert!(!text.contains(char::is_whitespace), "{text}");
            assert_eq!(text.parse(), Ok(prepared.clone()));
            assert_eq!(format!("  {text}\n").parse(), Ok(prepared));
        }
    }

    #[test]
    fn the_format_does_not_change_by_accident() {
        let fixed = PreparedTransaction { transactional_id: "t 1".into(), ..prepared() };
        let text = "kafka-share-txn/1:4L6g3nShT-eMCtK--X86sw:t%201:4000000017:32766:v2:1790000000000:";
        assert_eq!(fixed.to_string()[..text.len()], *text);
        // The check value of this CRC.
        assert_eq!(checksum("123456789"), 0xcbf4_3926);
    }

    #[test]
    fn every_cut_and_every_changed_byte_is_noticed() {
        let text = prepared().to_string();
        for end in 0..text.len() {
            assert!(text[..end].parse::<PreparedTransaction>().is_err(), "{}", &text[..end]);
        }
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1;
            let changed = String::from_utf8(bytes).unwrap();
            assert!(changed.parse::<PreparedTransaction>().is_err(), "{changed}");
        }
        // Undamaged, and of a later format.
        let later = prepared().body().replacen(MAGIC, "kafka-share-txn/10", 1);
        let later = format!("{later}:{:08x}", checksum(&later));
        for bad in ["", ":", "kafka-share-txn/1", "kafka-share-txn/2:::::::00000000", &later, &"x".repeat(1 << 20)] {
            assert!(bad.parse::<PreparedTransaction>().is_err());
        }
    }
}
