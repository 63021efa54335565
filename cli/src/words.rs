//! How numbers, times and foreign text are worded.

use std::borrow::Cow;
use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan, Unit, ZonedDateTime};

/// Text without what would move the cursor or colour the screen: a file's name and a server's
/// message can hold anything.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_harmful) {
        return Cow::Borrowed(text);
    }
    let mut printable = String::with_capacity(text.len());
    for character in text.chars() {
        if is_harmful(character) {
            printable.extend(character.escape_default());
        } else {
            printable.push(character);
        }
    }
    Cow::Owned(printable)
}

fn is_harmful(character: char) -> bool {
    character.is_control() && character != '\n'
}

/// A mailbox's name in a picture, where not even a line break may stand.
pub fn name(name: &str) -> String {
    printable(name).replace('\n', "\\n")
}

/// Text in one line.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The time so far ahead.
pub fn after(wait: Duration) -> Timestamp {
    SignedDuration::try_from(wait)
        .ok()
        .and_then(|wait| Timestamp::now().checked_add(wait).ok())
        .unwrap_or(Timestamp::MAX)
}

/// A time as RFC 3339 in UTC, to the millisecond; never before the time itself.
pub fn rfc3339(time: Timestamp) -> String {
    format!("{:.3}", rounded_up(time, Unit::Millisecond))
}

/// A time on the clock of this machine, to the second and never before the time itself; with the
/// date if that is another day.
pub fn clock(time: Timestamp) -> String {
    clock_at(&Timestamp::now().to_zoned_datetime(TimeZone::system()), time)
}

fn clock_at(now: &ZonedDateTime, time: Timestamp) -> String {
    let time = rounded_up(time, Unit::Second).to_zoned_datetime(now.time_zone().clone());
    let format = if time.date() == now.date() {
        "%H:%M:%S %Z"
    } else {
        "%Y-%m-%d %H:%M:%S %Z"
    };
    time.strftime(format).to_string()
}

fn rounded_up(time: Timestamp, unit: Unit) -> Timestamp {
    let (down, step) = match unit {
        Unit::Second => (time.as_second() * 1_000, 1_000.milliseconds()),
        _ => (time.as_millisecond(), 1.milliseconds()),
    };
    match Timestamp::from_millisecond(down) {
        Ok(down) if down < time => down.checked_add(step).unwrap_or(time),
        Ok(down) => down,
        Err(_) => time,
    }
}

/// A duration to two units, rounded up: `0.3 s`, `17 s`, `1 min 5 s`, `3 h 20 min`.
pub fn spoken(duration: Duration) -> String {
    let tenths = duration.as_nanos().div_ceil(100_000_000);
    if tenths < 100 {
        return format!("{}.{} s", tenths / 10, tenths % 10);
    }
    let seconds = duration.as_nanos().div_ceil(1_000_000_000);
    let minutes = if seconds < 3600 {
        seconds / 60
    } else {
        seconds.div_ceil(60)
    };
    match (minutes / 60, minutes % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, 0) => format!("{minutes} min"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, 0, _) => format!("{hours} h"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

/// A duration for a narrow column, rounded up: `17s`, `1m05s`, `3h20m`.
pub fn short(duration: Duration) -> String {
    let seconds = duration.as_nanos().div_ceil(1_000_000_000);
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => {
            let minutes = seconds.div_ceil(60);
            format!("{}h{:02}m", minutes / 60, minutes % 60)
        }
    }
}

/// A number for a narrow column: grouped below `long`, else rounded down as `12k`, `1.2k`, `4.2G`.
pub fn compact(number: u64, long: u64) -> String {
    if number < long.max(1_000) {
        return grouped(number);
    }
    let (unit, sign) = [(1_000_000_000, 'G'), (1_000_000, 'M')]
        .into_iter()
        .find(|(unit, _)| number >= *unit)
        .unwrap_or((1_000, 'k'));
    match (number / unit, number % unit * 10 / unit) {
        (whole, tenths @ 1..) if whole < 10 => format!("{whole}.{tenths}{sign}"),
        (whole, _) => format!("{whole}{sign}"),
    }
}

/// A number and what it counts: `1 mail`, `9,000 mails`.
pub fn counted(count: u64, one: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {one}{plural}", grouped(count))
}

/// A number with its thousands apart.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_never_told_too_short() {
        let told = |ms| spoken(Duration::from_millis(ms));
        assert_eq!(told(0), "0.0 s");
        assert_eq!(told(1), "0.1 s");
        assert_eq!(told(9_900), "9.9 s");
        assert_eq!(told(9_901), "10 s");
        assert_eq!(told(16_001), "17 s");
        assert_eq!(told(60_000), "1 min");
        assert_eq!(told(64_001), "1 min 5 s");
        assert_eq!(told(3_600_000), "1 h");
        assert_eq!(told(12_000_001), "3 h 21 min");
        assert_eq!(told(90_000_000), "25 h");
    }

    #[test]
    fn a_time_is_never_told_too_early() {
        let time: Timestamp = "2027-06-15T12:00:00.0001Z".parse().unwrap();
        let now = "2027-06-15T11:59:00+02:00[Europe/Amsterdam]"
            .parse::<ZonedDateTime>()
            .unwrap();
        assert_eq!(clock_at(&now, time), "14:00:01 CEST");
        assert_eq!(rfc3339(time), "2027-06-15T12:00:00.001Z");
        let even: Timestamp = "2027-06-15T23:00:00Z".parse().unwrap();
        assert_eq!(clock_at(&now, even), "2027-06-16 01:00:00 CEST");
        assert_eq!(rfc3339(even), "2027-06-15T23:00:00.000Z");
    }

    #[test]
    fn numbers_are_grouped_and_counted() {
        assert_eq!(
            [0, 999, 1_000, 1_234_567].map(grouped),
            ["0", "999", "1,000", "1,234,567"]
        );
        assert_eq!(counted(1, "mail"), "1 mail");
        assert_eq!(counted(2_000, "mail"), "2,000 mails");
    }

    #[test]
    fn narrow_columns_hold_any_number_and_wait() {
        let told = |ms| short(Duration::from_millis(ms));
        assert_eq!([0, 1, 59_001, 65_000].map(told), ["0s", "1s", "1m00s", "1m05s"]);
        assert_eq!(
            [3_600_000, 12_000_001, 90_000_000].map(told),
            ["1h00m", "3h21m", "25h00m"]
        );
        let numbers = [999, 1_000, 9_999, 12_345, 4_294_967_295];
        assert_eq!(
            numbers.map(|number| compact(number, 0)),
            ["999", "1k", "9.9k", "12k", "4.2G"]
        );
        assert_eq!(
            numbers.map(|number| compact(number, 10_000)),
            ["999", "1,000", "9,999", "12k", "4.2G"]
        );
    }

    #[test]
    fn foreign_text_cannot_steer_the_terminal() {
        assert_eq!(printable("a\u{1b}[31mb\r"), "a\\u{1b}[31mb\\r");
        assert_eq!(printable("é ü\n"), "é ü\n");
        assert_eq!(name("a\tb\nc\u{9b}"), "a\\tb\\nc\\u{9b}");
    }
}
