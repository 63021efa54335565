//! Which mail leaves room for which.

use lettre::Message;
use mail_parser::{HeaderForm, MessageParser};

/// Which mail leaves room for which.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Lane {
    /// Mail that somebody waits for.
    #[default]
    Normal,
    /// Campaigns, newsletters: it leaves the last part of every window to other mail, and waits in a
    /// queue of its own.
    Bulk,
}

impl Lane {
    /// What a mail says of itself: bulk are those with `Precedence: bulk`, `list` or `junk`
    /// (RFC 2076) and those that can be unsubscribed from (`List-Unsubscribe`, RFC 2369), unless
    /// `Importance: high` or `X-Priority: 1` says that somebody waits for it.
    #[must_use]
    pub fn of_mail(email: &[u8]) -> Self {
        let Some(mail) = MessageParser::new().parse_headers(email) else {
            return Self::Normal;
        };
        Self::of_headers(|name| {
            let text = mail.header_as(name, HeaderForm::Text).into_iter().next()?;
            Some(text.as_text().unwrap_or_default().to_owned())
        })
    }

    /// As [`Self::of_mail`].
    pub(crate) fn of_message(message: &Message) -> Self {
        Self::of_headers(|name| message.headers().get_raw(name).map(str::to_owned))
    }

    fn of_headers(header: impl Fn(&'static str) -> Option<String>) -> Self {
        let says = |name, words: &[&str]| {
            header(name).is_some_and(|text| {
                let word = text.split_whitespace().next().unwrap_or_default();
                words.iter().any(|known| word.eq_ignore_ascii_case(known))
            })
        };
        if says("Importance", &["high"]) || says("X-Priority", &["1"]) {
            return Self::Normal;
        }
        if says("Precedence", &["bulk", "list", "junk"]) || header("List-Unsubscribe").is_some() {
            return Self::Bulk;
        }
        Self::Normal
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(headers: &str) -> Lane {
        let email = format!("From: a@example.com\r\nTo: b@example.net\r\n{headers}\r\nPrecedence: bulk\r\n");
        let message = headers.lines().fold(Message::builder(), |builder, line| {
            let (name, value) = line.split_once(": ").expect("a header");
            let name = lettre::message::header::HeaderName::new_from_ascii(name.to_owned()).expect("a name");
            builder.raw_header(lettre::message::header::HeaderValue::new(name, value.to_owned()))
        });
        let message = message
            .from("a@example.com".parse().expect("an address"))
            .to("b@example.net".parse().expect("an address"))
            .body(String::from("Precedence: bulk"))
            .expect("a message");
        let lane = Lane::of_mail(email.as_bytes());
        assert_eq!(Lane::of_message(&message), lane, "{headers}");
        lane
    }

    #[test]
    fn a_mail_says_that_it_is_bulk() {
        for headers in [
            "Precedence: bulk\r\n",
            "precedence: Bulk\r\n",
            "Precedence: list\r\n",
            "List-Unsubscribe: <mailto:off@example.com>\r\n",
        ] {
            assert_eq!(lane(headers), Lane::Bulk, "{headers}");
        }
    }

    #[test]
    fn a_mail_that_somebody_waits_for_is_not_bulk_whatever_else_it_says() {
        for headers in [
            "",
            "Precedence: first-class\r\n",
            "Importance: high\r\nPrecedence: bulk\r\n",
            "X-Priority: 1 (Highest)\r\nList-Unsubscribe: <mailto:off@example.com>\r\n",
        ] {
            assert_eq!(lane(headers), Lane::Normal, "{headers}");
        }
    }

    #[test]
    fn an_unimportant_mail_in_bulk_stays_bulk() {
        assert_eq!(
            lane("Importance: low\r\nX-Priority: 5\r\nPrecedence: bulk\r\n"),
            Lane::Bulk
        );
    }
}
