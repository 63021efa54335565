//! How durations and ranges are written.

use std::ops::RangeInclusive;
use std::time::Duration;

use jiff::SignedDuration;

const LONGEST_PAUSE: Duration = Duration::from_hours(24);

/// A pause of more than nothing, and of what the module takes at most.
pub fn pause(text: &str) -> Result<Duration, String> {
    let length = duration(text)?;
    if length.is_zero() {
        return Err("that is no pause; to end one there is mailrl resume".into());
    }
    if length > LONGEST_PAUSE {
        return Err("a pause is 24h at most".into());
    }
    Ok(length)
}

/// As `90s`, `10m`, `1h30m`.
pub fn duration(text: &str) -> Result<Duration, String> {
    text.parse::<SignedDuration>()
        .ok()
        .and_then(|duration| Duration::try_from(duration).ok())
        .ok_or_else(|| "give a number and its unit, as 500ms, 90s, 10m, 2h or 1h30m".into())
}

/// More than nothing.
pub fn some_time(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        time if time < Duration::from_millis(1) => Err("it is 1ms at least".into()),
        time => Ok(time),
    }
}

/// As `100ms..3s`, or `2s` for just that.
pub fn durations(text: &str) -> Result<RangeInclusive<Duration>, String> {
    range(text, duration)
}

/// As `1..20`, or `3` for just that.
pub fn recipients(text: &str) -> Result<RangeInclusive<u32>, String> {
    range(text, |text| match text.parse() {
        Ok(0) | Err(_) => Err("give a number from 1, or two as 1..20".into()),
        Ok(number) => Ok(number),
    })
}

fn range<T: PartialOrd + Clone>(
    text: &str,
    one: impl Fn(&str) -> Result<T, String>,
) -> Result<RangeInclusive<T>, String> {
    let (low, high) = text.split_once("..").unwrap_or((text, text));
    let range = one(low.trim())?..=one(high.trim())?;
    if range.is_empty() {
        return Err("it ends before it begins".into());
    }
    Ok(range)
}

/// Pods and the senders in each, as `2x10`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pods {
    pub pods: u16,
    pub senders: u16,
}

pub fn pods(text: &str) -> Result<Pods, String> {
    text.split_once('x')
        .and_then(|(pods, senders)| {
            Some(Pods {
                pods: pods.parse().ok()?,
                senders: senders.parse().ok()?,
            })
        })
        .filter(|Pods { pods, senders }| *pods > 0 && *senders > 0)
        .ok_or_else(|| "give pods and the senders in each, as 2x10".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_a_unit() {
        assert_eq!(duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("10m"), Ok(Duration::from_mins(10)));
        assert_eq!(duration("1h30m"), Ok(Duration::from_mins(90)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        for text in ["", "90", "-5s", "s", "10 apples", "1e9h"] {
            assert!(duration(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_pause_is_more_than_nothing_and_a_day_at_most() {
        assert_eq!(pause("24h"), Ok(Duration::from_hours(24)));
        assert!(pause("0s").unwrap_err().contains("mailrl resume"));
        assert!(pause("24h1s").unwrap_err().contains("24h"));
    }

    #[test]
    fn a_range_is_two_or_one() {
        assert_eq!(recipients("1..20"), Ok(1..=20));
        assert_eq!(recipients("3"), Ok(3..=3));
        assert_eq!(
            durations("100ms..3s"),
            Ok(Duration::from_millis(100)..=Duration::from_secs(3))
        );
        for text in ["0", "0..2", "5..1", "..", "a"] {
            assert!(recipients(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn pods_have_senders() {
        assert_eq!(pods("2x10"), Ok(Pods { pods: 2, senders: 10 }));
        for text in ["", "2", "0x1", "1x0", "1x1x1"] {
            assert!(pods(text).is_err(), "{text:?}");
        }
    }
}
