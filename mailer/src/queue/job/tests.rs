use serde_json::json;

use super::*;

const MAIL: &str = "From: news@example.com\r\nTo: a@example.net\r\nSubject: Hello\r\n\r\nHello.\r\n";

fn schema() -> jsonschema::Validator {
    let text = include_str!("../../../../docs/send-scheduled-messages.schema.json");
    jsonschema::draft202012::new(&serde_json::from_str(text).unwrap()).unwrap()
}

/// A job with a mail in it, and these fields put over it; null takes one away.
fn job(fields: &Value) -> Value {
    let mut job = json!({ "message_id": "m-1", "mime": STANDARD.encode(MAIL) });
    for (name, value) in fields.as_object().unwrap() {
        match value {
            Value::Null => job.as_object_mut().unwrap().remove(name),
            value => job.as_object_mut().unwrap().insert(name.clone(), value.clone()),
        };
    }
    job
}

fn stored(path: &str) -> Value {
    job(&json!({ "mime": null, "mime_path": path }))
}

fn error(data: &Value) -> String {
    MailJob::parse(data).unwrap_err().to_string()
}

#[test]
fn code_and_schema_take_the_same_jobs() {
    let schema = schema();
    for good in [
        job(&json!({})),
        job(&json!({ "message_id": "<a.b@c.d>" })),
        job(&json!({ "message_id": "x".repeat(200) })),
        job(&json!({ "tenant": "contoso" })),
        job(&json!({ "from": "news@example.com" })),
        job(&json!({ "from": "news@example.com", "to": ["a@b.c", "a@b.c"] })),
        job(&json!({ "created_at": 1_803_902_400_000_u64 })),
        job(&json!({ "mime": "QQ==" })),
        job(&json!({ "mime": "QUE=" })),
        stored("messages/a.eml"),
        stored("messages/2027/03/é%2F..eml"),
        stored("messages/..."),
    ] {
        assert!(schema.is_valid(&good), "{good}");
        assert!(MailJob::parse(&good).is_ok(), "{good}: {}", error(&good));
    }
}

#[test]
fn code_and_schema_refuse_the_same_jobs_and_the_code_says_where_and_what_to_do() {
    let schema = schema();
    for (bad, field, advice) in [
        (json!("a mail"), "the top", "expected struct MailJob"),
        (json!([]), "the top", ""),
        (json!({}), "the top", "missing field `message_id`"),
        (
            job(&json!({ "message_id": null })),
            "the top",
            "missing field `message_id`",
        ),
        (
            job(&json!({ "message_id": 4711 })),
            "message_id",
            "expected a string",
        ),
        (job(&json!({ "message_id": "4711" })), "message_id", "no number"),
        (job(&json!({ "message_id": "-5" })), "message_id", "no number"),
        (job(&json!({ "message_id": "NaN" })), "message_id", "no number"),
        (job(&json!({ "message_id": "a:b" })), "message_id", "colons"),
        (
            job(&json!({ "message_id": "x".repeat(201) })),
            "message_id",
            "1 to 200",
        ),
        (
            job(&json!({ "subject": "Hello" })),
            "subject",
            "unknown field `subject`, expected",
        ),
        (job(&json!({ "tenant": " " })), "tenant", "leave it out"),
        (job(&json!({ "from": "news" })), "from", "name@example.com"),
        (job(&json!({ "to": "a@b.c" })), "to", "expected a sequence"),
        (job(&json!({ "to": [] })), "to", "leave it out"),
        (job(&json!({ "to": ["a@b.c", "b"] })), "to[1]", "name@example.com"),
        (
            job(&json!({ "created_at": "2027-03-01" })),
            "created_at",
            "expected u64",
        ),
        (job(&json!({ "created_at": 1.5 })), "created_at", "expected u64"),
        (
            job(&json!({ "created_at": 1_803_902_400 })),
            "created_at",
            "ms since 1970",
        ),
        (
            job(&json!({ "created_at": 1_803_902_400_000_000_u64 })),
            "created_at",
            "ms since 1970",
        ),
        (job(&json!({ "mime": null })), "the top", "mime (in base64)"),
        (job(&json!({ "mime": "" })), "mime", "empty"),
        (job(&json!({ "mime": MAIL })), "mime", "standard base64"),
        (job(&json!({ "mime": "QQ" })), "mime", "padding"),
        (job(&json!({ "mime": "QR==" })), "mime", "standard base64"),
        (job(&json!({ "mime": "QUFB\nQUFB" })), "mime", "in one line"),
        (job(&json!({ "mime": "QUF_" })), "mime", "standard base64"),
        (
            job(&json!({ "mime_path": "messages/a.eml" })),
            "mime_path",
            "one of them",
        ),
        (stored(""), "mime_path", "messages/name.eml"),
        (stored("a.eml"), "mime_path", "messages/name.eml"),
        (stored("messages"), "mime_path", "messages/name.eml"),
        (stored("messages/"), "mime_path", "messages/name.eml"),
        (stored("messages/a/"), "mime_path", "messages/name.eml"),
        (stored("messages//a"), "mime_path", "messages/name.eml"),
        (stored("/messages/a"), "mime_path", "messages/name.eml"),
        (stored("messages/../a"), "mime_path", "messages/name.eml"),
        (stored("messages/a/.."), "mime_path", "messages/name.eml"),
        (stored("messages/a\n"), "mime_path", "messages/name.eml"),
    ] {
        assert!(!schema.is_valid(&bad), "{bad}");
        let error = error(&bad);
        let at = format!("wrong at {field}: ");
        assert!(error.contains(&at) && error.contains(advice), "{bad}: {error}");
        assert!(
            error.contains("docs/send-scheduled-messages.schema.json"),
            "{error}"
        );
    }
}

#[test]
fn the_examples_in_the_schema_are_jobs() {
    let text = include_str!("../../../../docs/send-scheduled-messages.schema.json");
    let text: Value = serde_json::from_str(text).unwrap();
    let examples = text["examples"].as_array().unwrap();
    assert_eq!(examples.len(), 2);
    for example in examples {
        assert!(schema().is_valid(example), "{example}");
        let job = MailJob::parse(example).unwrap();
        if let Some(mime) = job.inline_mime().unwrap() {
            assert!(job.message(mime, 0).is_ok());
        }
    }
    for (name, property) in text["properties"].as_object().unwrap() {
        assert!(property["description"].is_string(), "{name}");
        for example in property["examples"].as_array().unwrap() {
            let fields = json!({ "mime": null, "mime_path": null, name: example });
            let job = match name.as_str() {
                "mime" | "mime_path" => job(&fields),
                _ => job(&json!({ name: example })),
            };
            assert!(MailJob::parse(&job).is_ok(), "{name}: {}", error(&job));
        }
    }
}

#[test]
fn an_error_never_quotes_a_whole_mail() {
    let bad = job(&json!({ "created_at": "x".repeat(10_000) }));
    assert!(error(&bad).len() < 600, "{}", error(&bad).len());
    let debug = format!("{:?}", MailJob::parse(&job(&json!({}))).unwrap());
    assert!(!debug.contains(&STANDARD.encode(MAIL)), "{debug}");
}

#[test]
fn what_the_job_leaves_out_the_mail_and_the_queue_say() {
    let job = MailJob::parse(&job(&json!({}))).unwrap();
    let mime = job.inline_mime().unwrap().unwrap();
    assert_eq!(mime, MAIL);
    let message = job.message(mime, 1_803_902_400_000).unwrap();
    assert_eq!(message.id.as_str(), "m-1");
    assert_eq!(message.sender, Sender::SystemMailbox);
    assert_eq!(message.mailbox(), "news@example.com");
    assert_eq!(message.envelope.to()[0].to_string(), "a@example.net");
    assert_eq!(message.created_at, time(1_803_902_400_000));
}

#[test]
fn what_the_job_says_goes_before_what_the_mail_says() {
    let said = json!({
        "tenant": "contoso", "from": "other@example.com", "to": ["x@y.z"], "created_at": 1_700_000_000_000_u64
    });
    let parsed = MailJob::parse(&job(&said)).unwrap();
    let message = parsed.message(MAIL.into(), 0).unwrap();
    assert_eq!(message.sender, Sender::Tenant("contoso".to_owned()));
    assert_eq!(message.mailbox(), "other@example.com");
    assert_eq!(message.envelope.to(), ["x@y.z".parse().unwrap()]);
    assert_eq!(message.created_at, time(1_700_000_000_000));
    let only_to = MailJob::parse(&job(&json!({ "to": ["x@y.z"] }))).unwrap();
    let mail = "From: news@example.com\r\nTo: nobody in particular\r\n\r\n";
    let message = only_to.message(mail.into(), 0).unwrap();
    assert_eq!(message.mailbox(), "news@example.com");
    assert_eq!(message.envelope.to(), ["x@y.z".parse().unwrap()]);
}

#[test]
fn a_mail_that_makes_no_envelope_is_an_error_that_says_what_to_do() {
    let job = MailJob::parse(&job(&json!({}))).unwrap();
    for mail in [
        "Hello",
        "From: a@b.c\r\n\r\n",
        "To: a@b.c\r\n\r\n",
        "From: a@b.c\r\nTo: Bob\r\n\r\n",
    ] {
        let error = job.message(mail.into(), 0).unwrap_err();
        assert!(matches!(error, JobError::Envelope(_)), "{error}");
        assert!(
            error.to_string().contains("give the job a from and a to"),
            "{error}"
        );
    }
}

#[test]
fn a_job_of_a_message_makes_the_same_message() {
    let first = MailJob::parse(&job(&json!({ "tenant": "contoso", "to": ["x@y.z", "a@b.c"] })))
        .unwrap()
        .message(MAIL.into(), 1_803_902_400_123)
        .unwrap();
    let job = MailJob::new(&first, "messages/m-1.eml".to_owned());
    let again = serde_json::to_value(&job).unwrap();
    assert!(schema().is_valid(&again), "{again}");
    let second = MailJob::parse(&again).unwrap().message(MAIL.into(), 5).unwrap();
    assert_eq!(
        (second.id, second.sender, second.envelope, second.created_at),
        (first.id, first.sender, first.envelope, first.created_at)
    );
}

#[test]
fn a_record_keeps_all_of_a_job_but_its_mail() {
    let parsed = MailJob::parse(&job(&json!({ "tenant": "contoso" }))).unwrap();
    let kept = parsed.without_mime();
    assert_eq!((kept.mime, kept.tenant), (None, parsed.tenant));
}
