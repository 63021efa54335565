//! Mails in S3, as a small server of our own speaks it: what is sent to it, and that its settings come
//! from the environment.

mod common;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use common::*;
use test_support::RedisServer;
use tokio::process::Command;

/// Objects by their paths, bucket included, and who asked.
#[derive(Clone, Default)]
struct S3 {
    objects: Arc<Mutex<BTreeMap<String, Bytes>>>,
    signed_by: Arc<Mutex<Vec<String>>>,
}

impl S3 {
    async fn start(&self) -> String {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().fallback(answer).with_state(self.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        url
    }

    fn paths(&self) -> Vec<String> {
        self.objects.lock().unwrap().keys().cloned().collect()
    }
}

async fn answer(State(s3): State<S3>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
    s3.signed_by.lock().unwrap().push(signer(&parts.headers));
    let path = parts.uri.path().to_owned();
    let mut objects = s3.objects.lock().unwrap();
    match parts.method {
        Method::PUT => {
            objects.insert(path, body);
            [(header::ETAG, "\"1\"")].into_response()
        }
        Method::GET | Method::HEAD => match objects.get(&path) {
            Some(object) => {
                let headers = [
                    (header::ETAG, "\"1\""),
                    (header::LAST_MODIFIED, "Wed, 01 Jan 2025 00:00:00 GMT"),
                ];
                (headers, object.clone()).into_response()
            }
            None => StatusCode::NOT_FOUND.into_response(),
        },
        // Several are deleted at once, as a list in XML.
        Method::POST if parts.uri.query() == Some("delete") => {
            let text = String::from_utf8(body.to_vec()).unwrap();
            let key = text
                .split_once("<Key>")
                .unwrap()
                .1
                .split_once("</Key>")
                .unwrap()
                .0;
            objects.remove(&format!("{}/{key}", path.trim_end_matches('/')));
            format!("<DeleteResult><Deleted><Key>{key}</Key></Deleted></DeleteResult>").into_response()
        }
        _ => StatusCode::NOT_IMPLEMENTED.into_response(),
    }
}

fn signer(headers: &HeaderMap) -> String {
    let signature = headers.get(header::AUTHORIZATION);
    signature.map_or_else(String::new, |value| value.to_str().unwrap().to_owned())
}

#[tokio::test]
async fn mails_are_kept_in_a_bucket_below_its_prefix_and_deleted_there() {
    let (redis, folder, s3) = (
        RedisServer::builder().start(),
        tempfile::tempdir().unwrap(),
        S3::default(),
    );
    let url = s3.start().await;
    let command = |words: &[&str]| -> Command {
        let mut command = bare_command(folder.path());
        command
            .args(words)
            .env("MAILRL_QUEUE_REDIS", redis.url())
            .env("MAILRL_STORE", "s3://mails/outbox")
            .env("AWS_ENDPOINT", &url)
            .env("AWS_ALLOW_HTTP", "true")
            .env("AWS_REGION", "eu-west-1")
            .env("AWS_ACCESS_KEY_ID", "the-key")
            .env("AWS_SECRET_ACCESS_KEY", SECRET);
        command
    };
    std::fs::write(folder.path().join("a.eml"), mail("a")).unwrap();
    run(&mut command(&["enqueue", "--id", "a", "a.eml"]))
        .await
        .ends_with(0);
    let paths = s3.paths();
    assert_eq!(paths.len(), 1);
    assert!(paths[0].starts_with("/mails/outbox/messages/a-"), "{paths:?}");
    assert_eq!(s3.objects.lock().unwrap()[&paths[0]], mail("a"));
    assert!(s3.signed_by.lock().unwrap()[0].contains("Credential=the-key/"));
    // It looks whether the mail is there before it has it sent.
    run(&mut command(&["queue", "send", "a"])).await.ends_with(0);
    run(&mut command(&["queue", "drop", "a"])).await.ends_with(0);
    assert!(s3.paths().is_empty());
    run(&mut command(&["queue", "send", "a"]))
        .await
        .ends_with(1)
        .says("its mail is not there any more");
}

#[tokio::test]
async fn a_bucket_that_cannot_be_had_is_an_error_that_says_what_to_set() {
    let (redis, folder) = (RedisServer::builder().start(), tempfile::tempdir().unwrap());
    let mut command = bare_command(folder.path());
    command
        .args(["enqueue", "a.eml"])
        .env("MAILRL_QUEUE_REDIS", redis.url())
        .env("MAILRL_STORE", "s3://mails/outbox")
        .env("AWS_ENDPOINT", nobody("http"))
        .env("AWS_ALLOW_HTTP", "true")
        .env("AWS_ACCESS_KEY_ID", "the-key")
        .env("AWS_SECRET_ACCESS_KEY", SECRET);
    std::fs::write(folder.path().join("a.eml"), mail("a")).unwrap();
    let run = run(&mut command).await;
    run.ends_with(1)
        .says("AWS_ENDPOINT")
        .says("a.eml: failed: the store of mails");
    assert!(!run.output().contains(SECRET), "{run:?}");
}
