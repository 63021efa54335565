use lettre::Message;
use proptest::prelude::*;

use super::*;

const BODY: &str = "\r\nBcc: not-a-header@example.net\r\n";

fn envelope(recipients: &[&str]) -> Envelope {
    let recipients = recipients.iter().map(|one| one.parse().unwrap()).collect();
    Envelope::new(Some("from@example.com".parse().unwrap()), recipients).unwrap()
}

fn addressed(recipients: &[&str], mail: &str) -> Result<String, AddressingError> {
    let addressed = address(&envelope(recipients), mail.as_bytes())?;
    Ok(String::from_utf8(addressed.into_owned()).unwrap())
}

fn reached(mail: &str) -> Vec<String> {
    let mut reached = Headers::read(mail.as_bytes()).recipients;
    reached.sort_unstable();
    reached
}

/// True if `longer` is `shorter` with one piece put in.
fn only_adds(longer: &str, shorter: &str) -> bool {
    let common = longer
        .bytes()
        .zip(shorter.bytes())
        .take_while(|(a, b)| a == b)
        .count();
    longer.len() > shorter.len() && longer.as_bytes().ends_with(&shorter.as_bytes()[common..])
}

#[test]
fn a_mail_whose_headers_name_everybody_is_not_touched() {
    let mail = format!("To: A@Example.net, b@example.net\r\nCc: c@example.net\r\n{BODY}");
    let envelope = envelope(&["a@example.NET", "b@example.net", "c@example.net", "b@example.net"]);
    assert_eq!(
        address(&envelope, mail.as_bytes()),
        Ok(Cow::Borrowed(mail.as_bytes()))
    );
}

#[test]
fn who_stands_in_the_envelope_only_gets_a_bcc_once() {
    let mail = format!("To: a@example.net\r\n{BODY}");
    let recipients = ["a@example.net", "b@example.net", "B@example.net", "c@example.net"];
    assert_eq!(
        addressed(&recipients, &mail),
        Ok(format!("Bcc: b@example.net, c@example.net\r\n{mail}"))
    );
}

#[test]
fn the_bcc_that_lettre_takes_out_comes_back() {
    let mail = Message::builder()
        .from("from@example.com".parse().unwrap())
        .bcc("Hidden <hidden@example.net>".parse().unwrap())
        .to("Seen <seen@example.net>".parse().unwrap())
        .body(String::from("Hello."))
        .unwrap();
    let addressed = address(mail.envelope(), &mail.formatted()).unwrap().into_owned();
    let addressed = String::from_utf8(addressed).unwrap();
    assert_eq!(reached(&addressed), ["hidden@example.net", "seen@example.net"]);
}

#[test]
fn a_bcc_that_is_there_is_added_to_whatever_its_form() {
    for bcc in [
        "Bcc: a@example.net\r\n",
        "bcc:a@example.net\r\n",
        "BCC : a@example.net\r\n",
        "Bcc:\ta@example.net\r\n",
        "Bcc:\r\n a@example.net\r\n",
        "Bcc: A <a@example.net>,\r\n\ta@example.net\r\n",
        "Bcc: Team: a@example.net;\r\n",
        "Bcc: (nobody else) a@example.net\r\n",
    ] {
        for mail in [
            format!("{bcc}Subject: x\r\n{BODY}"),
            format!("Subject: x\r\n{bcc}{BODY}"),
        ] {
            let new = addressed(&["a@example.net", "b@example.net", "c@example.net"], &mail).unwrap();
            assert!(only_adds(&new, &mail), "{new}");
            let mut reached = reached(&new);
            reached.dedup();
            assert_eq!(
                reached,
                ["a@example.net", "b@example.net", "c@example.net"],
                "{new}"
            );
            let count = new
                .split(BODY)
                .next()
                .unwrap()
                .to_ascii_lowercase()
                .matches("bcc")
                .count();
            assert_eq!(count, 1, "{new}");
        }
    }
    for bcc in ["Bcc:\r\n", "Bcc: \r\n", "Bcc: undisclosed-recipients:;\r\n"] {
        let mail = format!("To: a@example.net\r\n{bcc}Subject: x\r\n{BODY}");
        let new = addressed(&["a@example.net", "b@example.net"], &mail).unwrap();
        assert_eq!(reached(&new), ["a@example.net", "b@example.net"], "{new}");
        assert!(only_adds(&new, &mail) && new.contains("Subject: x\r\n"), "{new}");
    }
}

#[test]
fn many_are_folded_into_short_lines() {
    let recipients: Vec<_> = (0..1000).map(|n| format!("reader{n}@example.net")).collect();
    let recipients: Vec<_> = recipients.iter().map(String::as_str).collect();
    let new = addressed(&recipients, BODY).unwrap();
    assert_eq!(reached(&new).len(), 1000);
    let lines: Vec<_> = new.split("\r\n").collect();
    assert!(lines.iter().all(|line| line.len() <= 76), "{new}");
    assert!(lines.len() < 350, "lines are filled");
}

#[test]
fn a_mail_with_bare_line_feeds_gets_such() {
    let recipients: Vec<_> = (0..10).map(|n| format!("reader{n}@example.net")).collect();
    let recipients: Vec<_> = recipients.iter().map(String::as_str).collect();
    for mail in [
        "Subject: x\n\nHello.\n",
        "Bcc: reader0@example.net\nSubject: x\n\nHello.\n",
        "\nHello.\n",
    ] {
        let new = addressed(&recipients, mail).unwrap();
        assert!(!new.contains('\r'), "{new:?}");
        assert_eq!(reached(&new).len(), 10, "{new:?}");
        assert!(new.ends_with("\n\nHello.\n"), "{new:?}");
    }
}

#[test]
fn a_mail_without_headers_or_body_gets_one() {
    assert_eq!(
        addressed(&["a@example.net"], ""),
        Ok("Bcc: a@example.net\r\n".into())
    );
    assert_eq!(
        addressed(&["a@example.net"], "\r\nHello."),
        Ok("Bcc: a@example.net\r\n\r\nHello.".into())
    );
    assert_eq!(
        addressed(&["a@example.net", "b@example.net"], "To: b@example.net"),
        Ok("Bcc: a@example.net\r\nTo: b@example.net".into())
    );
    assert_eq!(
        addressed(&["a@example.net", "b@example.net"], "Bcc: b@example.net"),
        Ok("Bcc: a@example.net,\r\n b@example.net".into())
    );
    assert_eq!(
        addressed(&["a@example.net"], "To: a@example.net\r\nBcc: x@example.net"),
        Err(AddressingError::NotInEnvelope("x@example.net".into()))
    );
}

#[test]
fn who_stands_in_the_headers_only_is_an_error() {
    for header in ["To", "Cc", "Bcc"] {
        let mail = format!("To: a@example.net\r\n{header}: Surprise <x@example.net>\r\n{BODY}");
        assert_eq!(
            addressed(&["a@example.net"], &mail),
            Err(AddressingError::NotInEnvelope("x@example.net".into()))
        );
    }
}

#[test]
fn nothing_is_put_before_white_space_that_would_continue_it() {
    let mail = format!(" x@example.net\r\nTo: a@example.net\r\n{BODY}");
    assert_eq!(
        addressed(&["a@example.net", "b@example.net"], &mail),
        Err(AddressingError::BeginsWithSpace)
    );
}

#[test]
fn no_address_injects_a_header_or_another_recipient() {
    for user in [
        "a\r\nX: y",
        "a\n",
        "a\0",
        "b@example.net, a",
        "b@example.net>, <a",
        "Team: a",
        "a (",
        "\"a",
    ] {
        let recipient = Address::new_dangerous(user, "example.net");
        let envelope = Envelope::new(None, vec![recipient.clone()]).unwrap();
        match address(&envelope, BODY.as_bytes()) {
            Err(AddressingError::NotAnAddress(named)) => {
                assert!(named.eq_ignore_ascii_case(recipient.as_ref()), "{named:?}");
            }
            other => panic!("{user:?}: {other:?}"),
        }
    }
}

#[test]
fn unusual_addresses_come_through() {
    for recipient in [
        "\"a, b\"@example.net",
        "o'hara+x=y@example.net",
        "ü@bücher.example",
        "a@[127.0.0.1]",
    ] {
        let new = addressed(&[recipient, "b@example.net"], BODY).unwrap();
        assert!(reached(&new).contains(&recipient.to_owned()), "{new}");
    }
}

proptest! {
    #[test]
    fn headers_always_name_exactly_the_envelope(
        in_headers in proptest::collection::vec((0_usize..12, 0_usize..3), 0..8),
        envelope_only in proptest::collection::vec(0_usize..12, 1..12),
        line_end in prop_oneof![Just("\r\n"), Just("\n")],
    ) {
        let name = |n: &usize| format!("Reader{n}@Example.net");
        let mut mail = String::from("Subject: x") + line_end;
        for (one, header) in &in_headers {
            mail += &[["To", "cc", "BCC"][*header], ": ", &name(one), line_end].concat();
        }
        mail += line_end;
        mail += "Hello.";
        let mut all: Vec<_> = in_headers.iter().map(|(one, _)| one).chain(&envelope_only).map(name).collect();
        let recipients: Vec<_> = all.iter().map(String::as_str).collect();
        let new = addressed(&recipients, &mail).unwrap();
        let mut reached = reached(&new);
        reached.dedup();
        all.sort_unstable();
        all.dedup();
        prop_assert_eq!(reached, all);
        prop_assert!(new == mail || only_adds(&new, &mail));
    }

    #[test]
    fn no_mail_whatever_it_is_made_of_reaches_anybody_else(
        mail in "(To|Bcc|X|\\r\\n|\\n| |\t|:|,|;|<|>|\"|\\(|a@example\\.net|b@example\\.net|=\\?utf-8\\?q\\?a\\?=){0,14}",
    ) {
        if let Ok(new) = addressed(&["a@example.net", "b@example.net"], &mail) {
            let mut reached = reached(&new);
            reached.dedup();
            prop_assert_eq!(reached, ["a@example.net", "b@example.net"]);
            prop_assert!(new == mail || only_adds(&new, &mail));
        }
    }
}
