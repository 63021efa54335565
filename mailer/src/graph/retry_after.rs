//! How long Graph asks a mailbox to wait, in all the forms that are seen in the wild.

use std::time::{Duration, SystemTime};

use reqwest::header::{HeaderMap, RETRY_AFTER};

const SHORTEST: Duration = Duration::from_secs(1);
const WHEN_NONE_IS_UNDERSTOOD: Duration = Duration::from_mins(1);
/// The longest pause that `MAILRL.PAUSE` takes.
const LONGEST: Duration = Duration::from_hours(24);

/// True if the answer has a `Retry-After`, whatever it says.
pub(super) fn is_given(headers: &HeaderMap) -> bool {
    headers.contains_key(RETRY_AFTER)
}

/// The longest wait that any `Retry-After` names, within 1 s and 24 h; 60 s if none can be
/// understood.
///
/// RFC 9110, section 10.2.3, allows whole seconds or a date. Fractions, several headers and lists
/// in one header are understood too.
pub(super) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Duration {
    let values = headers.get_all(RETRY_AFTER).iter();
    let understood = values
        .filter_map(|value| value.to_str().ok())
        .filter_map(|value| longest(value, now));
    understood
        .max()
        .unwrap_or(WHEN_NONE_IS_UNDERSTOOD)
        .clamp(SHORTEST, LONGEST)
}

/// The longest wait in a list; dates have a comma of their own after the day's name.
fn longest(list: &str, now: SystemTime) -> Option<Duration> {
    let mut items = list.split(',').map(str::trim).peekable();
    let mut longest = None;
    while let Some(item) = items.next() {
        let mut wait = seconds(item).or_else(|| until(item, now));
        if wait.is_none()
            && let Some(rest) = items.peek()
        {
            wait = until(&format!("{item}, {rest}"), now);
            if wait.is_some() {
                items.next();
            }
        }
        longest = longest.max(wait);
    }
    longest
}

fn seconds(text: &str) -> Option<Duration> {
    let seconds: f64 = text.parse().ok()?;
    if !seconds.is_finite() || seconds < 0.0 {
        return None;
    }
    Some(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
}

/// A date that has passed asks for no wait at all.
fn until(text: &str, now: SystemTime) -> Option<Duration> {
    let date = httpdate::parse_http_date(text).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use proptest::prelude::*;
    use reqwest::header::HeaderValue;

    use super::*;

    const NOON: &str = "Wed, 21 Oct 2015 12:00:00 GMT";

    fn wait(values: &[&str]) -> Duration {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(RETRY_AFTER, HeaderValue::from_str(value).unwrap());
        }
        retry_after(&headers, httpdate::parse_http_date(NOON).unwrap())
    }

    fn seconds(values: &[&str]) -> f64 {
        wait(values).as_secs_f64()
    }

    #[track_caller]
    fn assert_waits(values: &[&str], expected: f64) {
        assert!(
            (seconds(values) - expected).abs() < 1e-9,
            "{values:?}: {:?}",
            wait(values)
        );
    }

    #[test]
    fn seconds_and_fractions_are_taken_as_they_are() {
        assert_waits(&["120"], 120.0);
        assert_waits(&[" 120 "], 120.0);
        assert_waits(&["2.5"], 2.5);
        assert_waits(&["007"], 7.0);
    }

    #[test]
    fn of_several_the_longest_counts() {
        assert_waits(&["5, 30"], 30.0);
        assert_waits(&["30,5"], 30.0);
        assert_waits(&["3", "40", "5"], 40.0);
        assert_waits(&["3, soon", "later,4"], 4.0);
        assert_waits(&["3, Wed, 21 Oct 2015 12:00:10 GMT, 4"], 10.0);
        assert_waits(
            &["Wed, 21 Oct 2015 12:00:10 GMT, Wed, 21 Oct 2015 12:00:20 GMT"],
            20.0,
        );
    }

    #[test]
    fn dates_count_from_now() {
        assert_waits(&["Wed, 21 Oct 2015 12:02:00 GMT"], 120.0);
        assert_waits(&["Wednesday, 21-Oct-15 12:02:00 GMT"], 120.0);
        assert_waits(&["Wed Oct 21 12:02:00 2015"], 120.0);
    }

    #[test]
    fn what_has_passed_waits_a_second() {
        assert_waits(&["0"], 1.0);
        assert_waits(&["0.2"], 1.0);
        assert_waits(&[NOON], 1.0);
        assert_waits(&["Wed, 21 Oct 2015 11:00:00 GMT"], 1.0);
        assert_waits(&["Thu, 01 Jan 1970 00:00:00 GMT"], 1.0);
    }

    #[test]
    fn nothing_waits_longer_than_a_day() {
        for long in [
            "86401",
            "1e308",
            "99999999999999999999999999999",
            "Fri, 31 Dec 9999 23:59:59 GMT",
        ] {
            assert_waits(&[long], 86_400.0);
        }
    }

    #[test]
    fn what_cannot_be_understood_waits_a_minute() {
        assert_waits(&[], 60.0);
        for rubbish in [
            "",
            " ",
            ",",
            ",,",
            "soon",
            "NaN",
            "inf",
            "-inf",
            "Infinity",
            "-1",
            "-1e308",
            "1e999",
            "0x10",
            "120s",
            "1 2",
            "Wed, 21 Oct",
            "Wed, 99 Oct 2015 12:00:00 GMT",
            "\"5\"",
        ] {
            assert_waits(&[rubbish], 60.0);
        }
        let mut headers = HeaderMap::new();
        headers.append(RETRY_AFTER, HeaderValue::from_bytes(b"\xff5").unwrap());
        assert_eq!(retry_after(&headers, UNIX_EPOCH), Duration::from_mins(1));
    }

    proptest! {
        #[test]
        fn any_value_gives_a_wait_from_a_second_to_a_day(
            values in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 0..4),
            now in 0_u64..10_000_000_000,
        ) {
            let mut headers = HeaderMap::new();
            for value in values.iter().filter_map(|value| HeaderValue::from_bytes(value).ok()) {
                headers.append(RETRY_AFTER, value);
            }
            let wait = retry_after(&headers, UNIX_EPOCH + Duration::from_secs(now));
            prop_assert!((SHORTEST..=LONGEST).contains(&wait));
        }

        #[test]
        fn any_list_of_seconds_waits_its_largest(list in proptest::collection::vec(1_u32..86_400, 1..6)) {
            let text = list.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            prop_assert_eq!(wait(&[&text]).as_secs(), u64::from(*list.iter().max().unwrap()));
        }

        #[test]
        fn any_date_ahead_waits_until_then(ahead in 1_u64..86_400) {
            let date = httpdate::parse_http_date(NOON).unwrap() + Duration::from_secs(ahead);
            prop_assert_eq!(wait(&[&httpdate::fmt_http_date(date)]), Duration::from_secs(ahead));
        }
    }
}
