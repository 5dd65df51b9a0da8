//! `TimestampRouter`: topics by time, for sinks that name tables or indices after them.

use super::Transformation;
use super::settings::Settings;
use crate::{ConnectError, SinkRecord};

const DAY: i64 = 86_400_000;
/// More than any part of a time has.
const MAX_DIGITS: usize = 20;

#[derive(Debug)]
pub(super) struct TimestampRouter {
    topic: String,
    timestamp: Vec<Piece>,
}

/// Part of a pattern of Java's `SimpleDateFormat`.
#[derive(Debug, PartialEq)]
enum Piece {
    Text(String),
    /// A letter, and how often it is there: the least number of digits.
    Number(char, usize),
}

impl TimestampRouter {
    pub(super) fn new(settings: &mut Settings<'_>) -> Result<Self, ConnectError> {
        let topic = settings.take("topic.format").unwrap_or_else(|| "${topic}-${timestamp}".to_owned());
        let format = settings.take("timestamp.format").unwrap_or_else(|| "yyyyMMdd".to_owned());
        let timestamp = pieces(&format).map_err(|why| settings.wrong("timestamp.format", &format, &why))?;
        Ok(TimestampRouter { topic, timestamp })
    }
}

fn pieces(format: &str) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let mut text = String::new();
    let mut rest = format.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\'' if rest.next_if_eq(&'\'').is_some() => text.push('\''),
            '\'' => loop {
                match rest.next() {
                    Some('\'') if rest.next_if_eq(&'\'').is_some() => text.push('\''),
                    Some('\'') => break,
                    Some(c) => text.push(c),
                    None => return Err("a quote is not closed".into()),
                }
            },
            'a'..='z' | 'A'..='Z' => {
                let mut count = 1;
                while rest.next_if_eq(&c).is_some() {
                    count += 1;
                }
                if count > MAX_DIGITS {
                    return Err(format!("{c:?} {count} times is too often: up to {MAX_DIGITS} digits are supported"));
                }
                if !"yMdHmsS".contains(c) || c == 'M' && count > 2 {
                    return Err(format!(
                        "{c:?} {count} times is not supported: of the letters, yMdHmsS are (M up to twice)"
                    ));
                }
                if !text.is_empty() {
                    pieces.push(Piece::Text(std::mem::take(&mut text)));
                }
                pieces.push(Piece::Number(c, count));
            }
            c => text.push(c),
        }
    }
    if !text.is_empty() {
        pieces.push(Piece::Text(text));
    }
    Ok(pieces)
}

/// Year, month and day of a day since 1970-01-01, in the calendar of Gregory.
pub(crate) fn civil(days: i64) -> (i64, i64, i64) {
    // Years begin in March here, so that a leap day is the last of its year; 400 years have 146,097 days.
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (year_of_era + era * 400 + next, month, day)
}

fn format(pieces: &[Piece], timestamp: i64) -> String {
    let (year, month, day) = civil(timestamp.div_euclid(DAY));
    let millis = timestamp.rem_euclid(DAY);
    let mut text = String::new();
    for piece in pieces {
        let (number, digits) = match piece {
            Piece::Text(literal) => {
                text.push_str(literal);
                continue;
            }
            Piece::Number('y', 2) => (year.rem_euclid(100), 2),
            Piece::Number('y', n) => (year, *n),
            Piece::Number('M', n) => (month, *n),
            Piece::Number('d', n) => (day, *n),
            Piece::Number('H', n) => (millis / 3_600_000, *n),
            Piece::Number('m', n) => (millis / 60_000 % 60, *n),
            Piece::Number('s', n) => (millis / 1_000 % 60, *n),
            Piece::Number(_, n) => (millis % 1_000, *n),
        };
        text.push_str(&format!("{number:0digits$}"));
    }
    text
}

impl Transformation for TimestampRouter {
    fn apply(&self, mut record: SinkRecord) -> Result<Option<SinkRecord>, ConnectError> {
        if record.timestamp < 0 {
            return Err(ConnectError::fatal("the record has no timestamp to route by"));
        }
        let timestamp = format(&self.timestamp, record.timestamp);
        record.topic = self.topic.replace("${topic}", record.topic.as_str()).replace("${timestamp}", &timestamp).into();
        Ok(Some(record))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_as_java_formats_them() {
        for (pattern, timestamp, text) in [
            ("yyyyMMdd", 0, "19700101"),
            ("yyyyMMdd", 951_782_400_000, "20000229"),
            ("yyyy-MM-dd'T'HH:mm:ss.SSS", 1_709_251_199_999, "2024-02-29T23:59:59.999"),
            ("yy.M.d 'o''clock' H", 1_709_251_200_000, "24.3.1 o'clock 0"),
            ("yyyyMMdd", 4_102_444_800_000, "21000101"),
        ] {
            assert_eq!(format(&pieces(pattern).unwrap(), timestamp), text, "{pattern}");
        }
        for (pattern, word) in [("MMM", "'M'"), ("yyyy'", "quote"), ("EEE", "'E'"), (&"y".repeat(70_000), "up to 20")] {
            assert!(pieces(pattern).unwrap_err().contains(word));
        }
    }
}
