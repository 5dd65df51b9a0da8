//! Bytes, times and tables as text.

use crate::exit::Failure;
use serde_json::{Value, json};
use std::io::Write;
use std::time::Duration;

/// Standard base64 with padding (RFC 4648).
pub(crate) fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().enumerate().fold(0_u32, |word, (i, byte)| word | u32::from(*byte) << (16 - 8 * i));
        for i in 0..4 {
            let digit = char::from(ALPHABET[(word >> (18 - 6 * i)) as usize & 63]);
            text.push(if i <= chunk.len() { digit } else { '=' });
        }
    }
    text
}

/// The bytes of standard base64 with padding; `None` where it is none.
pub(crate) fn from_base64(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let (chunks, rest) = text.as_bytes().as_chunks::<4>();
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for (i, chunk) in chunks.iter().enumerate() {
        let padding = chunk.iter().rev().take_while(|b| **b == b'=').count();
        if padding > 2 || (padding > 0 && i + 1 < chunks.len()) {
            return None;
        }
        let digits = chunk[..4 - padding].iter().map(|b| digit(*b)).collect::<Option<Vec<u8>>>()?;
        let word = digits.iter().enumerate().fold(0_u32, |word, (i, d)| word | u32::from(*d) << (18 - 6 * i));
        bytes.extend(&word.to_be_bytes()[1..4 - padding]);
    }
    rest.is_empty().then_some(bytes)
}

const BASE64: &str = "base64:";

/// A value as one line: text as it is; what is no text, holds control characters or looks like base64 itself, as
/// `base64:`. `null` for none.
pub(crate) fn one_line(value: Option<&[u8]>) -> String {
    let Some(value) = value else { return "null".into() };
    match std::str::from_utf8(value) {
        Ok(text) if !text.starts_with(BASE64) && !text.chars().any(|c| c.is_control() && c != '\t') => text.to_owned(),
        _ => format!("{BASE64}{}", base64(value)),
    }
}

/// Bytes in JSON: a string where they are UTF-8, else an object with `base64`; null for none.
pub(crate) fn json_bytes(value: Option<&[u8]>) -> Value {
    match value {
        None => Value::Null,
        Some(value) => match std::str::from_utf8(value) {
            Ok(text) => Value::from(text),
            Err(_) => json!({ "base64": base64(value) }),
        },
    }
}

/// Parses a time such as `10s`, `500ms`, `2m` or `1h`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim().find(|c: char| !c.is_ascii_digit()).unwrap_or(text.trim().len());
    let (number, unit) = text.trim().split_at(digits);
    let millis = match unit.trim() {
        "ms" => 1,
        "s" => 1_000,
        "m" | "min" => 60_000,
        "h" => 3_600_000,
        _ => return Err("a time with its unit is expected, such as 10s, 500ms, 2m or 1h".into()),
    };
    let time = number.parse::<u64>().ok().and_then(|n| n.checked_mul(millis)).filter(|ms| *ms > 0);
    match time.map(Duration::from_millis) {
        Some(time) if time <= Duration::from_secs(365 * 86_400) => Ok(time),
        _ => Err("it must be more than 0 and at most a year".into()),
    }
}

/// Milliseconds since 1970 of a number, or of a date and time such as `2026-11-29T10:30:00Z`, `2026-11-29T10:30+02:00`
/// or `2026-11-29` (UTC where no zone is named).
pub(crate) fn timestamp(text: &str) -> Result<i64, String> {
    if let Ok(millis) = text.parse::<i64>() {
        return if millis < 0 { Err("it must not be negative".into()) } else { Ok(millis) };
    }
    moment(text).filter(|ms| *ms >= 0).ok_or_else(|| {
        "milliseconds since 1970, or a time such as 2026-11-29T10:30:00Z or 2026-11-29T10:30+02:00, are expected".into()
    })
}

fn moment(text: &str) -> Option<i64> {
    let (date, time) = text.split_once(['T', ' ']).unwrap_or((text, "00:00"));
    let mut parts = date.split('-').map(|p| digits(p, 4));
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    if parts.next().is_some() || !(1970..=9999).contains(&year) || !(1..=12).contains(&month) {
        return None;
    }
    let (clock, zone) = match time.find(['Z', '+', '-']) {
        Some(at) => time.split_at(at),
        None => (time, "Z"),
    };
    let offset = match zone {
        "Z" => 0,
        zone => {
            let (hours, minutes) = zone[1..].split_once(':')?;
            let minutes = digits(hours, 2)? * 60 + digits(minutes, 2)?;
            if zone.starts_with('-') { -minutes } else { minutes }
        }
    };
    let (whole, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let mut parts = whole.split(':').map(|p| digits(p, 2));
    let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next().unwrap_or(Some(0))?);
    if parts.next().is_some() || hour > 23 || minute > 59 || second > 59 || day < 1 || day > month_days(year, month) {
        return None;
    }
    let millis = digits(&format!("{fraction:0<3}"), 3)?;
    Some((((days(year, month, day) * 24 + hour) * 60 + minute - offset) * 60 + second) * 1000 + millis)
}

fn digits(text: &str, most: usize) -> Option<i64> {
    let good = (1..=most).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    good.then(|| text.parse().ok()).flatten()
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn month_days(year: i64, month: i64) -> i64 {
    match month {
        2 => 28 + i64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970-01-01 of a date after it.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let years: i64 = (1970..year).map(|y| 365 + i64::from(is_leap(y))).sum();
    let months: i64 = (1..month).map(|m| month_days(year, m)).sum();
    years + months + day - 1
}

/// Prints rows below a heading, in columns; the first row is the heading.
pub(crate) fn table(out: &mut impl Write, rows: &[Vec<String>]) -> Result<(), Failure> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |i: usize| rows.iter().filter_map(|row| row.get(i)).map(|cell| cell.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for row in rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        let line = cells.collect::<Vec<_>>().join("  ");
        writeln!(out, "{}", line.trim_end()).map_err(|e| Failure::output(&e))?;
    }
    Ok(())
}

/// `1 record`, `2 records`.
pub(crate) fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// A cell of each of some words.
pub(crate) fn row<const N: usize>(cells: [&dyn std::fmt::Display; N]) -> Vec<String> {
    cells.iter().map(ToString::to_string).collect()
}

/// Prints one JSON value and a line end.
pub(crate) fn print_json(value: &Value) -> Result<(), Failure> {
    writeln!(std::io::stdout(), "{value:#}").map_err(|e| Failure::output(&e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_has_the_vectors_of_its_rfc() {
        for (bytes, text) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(base64(bytes.as_bytes()), text);
            assert_eq!(from_base64(text).as_deref(), Some(bytes.as_bytes()));
        }
        assert_eq!(base64(&[0xfb, 0xff, 0xfe]), "+//+");
        for bad in ["Z", "Zg", "Zg=", "Z===", "====", "Zg==Zg==", "Zm9*", "Zm 9"] {
            assert_eq!(from_base64(bad), None, "{bad}");
        }
    }

    #[test]
    fn no_value_breaks_a_line_or_is_taken_for_another() {
        assert_eq!(one_line(Some(b"a\tb \xc3\xa9")), "a\tb é");
        for bytes in [&b"a\nb"[..], b"\xff", b"base64:YQ==", b"\x1b[31m", b"\r"] {
            let line = one_line(Some(bytes));
            assert_eq!(line, format!("base64:{}", base64(bytes)));
        }
        assert_eq!((one_line(None), one_line(Some(b""))), ("null".into(), String::new()));
        assert_eq!(json_bytes(Some(b"\xff")), json!({ "base64": "/w==" }));
        assert_eq!(json_bytes(Some(b"a\nb")), json!("a\nb"));
    }

    #[test]
    fn times_are_read_or_refused() {
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        for bad in ["", "10", "s", "-1s", "0s", "1.5s", "10 days", "99999999999999999999s", "9000h"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn moments_are_read_or_refused() {
        for (text, millis) in [
            ("0", 0),
            ("1764408600000", 1_764_408_600_000),
            ("1970-01-01", 0),
            ("2000-03-01T00:00:00Z", 951_868_800_000),
            ("2026-11-29T10:30:00Z", 1_795_948_200_000),
            ("2026-11-29T10:30:00.250Z", 1_795_948_200_250),
            ("2026-11-29 12:30+02:00", 1_795_948_200_000),
            ("2026-11-29T05:30-05:00", 1_795_948_200_000),
        ] {
            assert_eq!(timestamp(text), Ok(millis), "{text}");
        }
        for bad in
            ["-1", "soon", "2026-02-29", "2026-13-01", "2026-11-29T25:00Z", "2026-11-29T10:30+2", "1969-12-31", ""]
        {
            assert!(timestamp(bad).is_err(), "{bad}");
        }
    }
}
