//! A client of the simulator that does what Graph's own documentation says, and no more.

// Each test file is a program of its own and uses a part of this.
#![allow(dead_code)]

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use graph_sim::GraphSim;
use reqwest::{Client, RequestBuilder, Response};
use serde_json::Value;

pub const MAILBOX: &str = "news@example.com";

pub struct Sender {
    pub http: Client,
    pub base_url: String,
    pub token: String,
}

impl Sender {
    pub async fn new(sim: &GraphSim) -> Self {
        Self::to(sim.base_url()).await
    }

    pub async fn to(base_url: String) -> Self {
        let http = http();
        let answer = token_request(&http, &base_url).send().await.unwrap();
        let answer: Value = answer.json().await.unwrap();
        let token = answer["access_token"].as_str().unwrap().to_owned();
        Self {
            http,
            base_url,
            token,
        }
    }

    pub fn post(&self, mailbox: &str, body: String) -> RequestBuilder {
        self.http
            .post(format!("{}/v1.0/users/{mailbox}/sendMail", self.base_url))
            .bearer_auth(&self.token)
            .header("content-type", "text/plain")
            .body(body)
    }

    pub async fn send(&self, recipients: &str) -> Response {
        self.post(MAILBOX, mime(recipients)).send().await.unwrap()
    }

    pub async fn status(&self, recipients: &str) -> u16 {
        self.send(recipients).await.status().as_u16()
    }
}

pub fn http() -> Client {
    Client::builder().no_proxy().build().unwrap()
}

pub fn token_request(http: &Client, base_url: &str) -> RequestBuilder {
    http.post(format!("{base_url}/tenant/oauth2/v2.0/token")).form(&[
        ("grant_type", "client_credentials"),
        ("client_id", "app"),
        ("client_secret", "secret"),
        ("scope", "https://graph.microsoft.com/.default"),
    ])
}

pub fn mime(recipients: &str) -> String {
    STANDARD.encode(format!(
        "From: {MAILBOX}\r\nTo: {recipients}\r\nSubject: Hello\r\n\r\nHello.\r\n"
    ))
}

pub async fn error_code(response: Response) -> (u16, String) {
    let status = response.status().as_u16();
    let body: Value = response.json().await.unwrap();
    (
        status,
        body["error"]["code"].as_str().unwrap_or_default().to_owned(),
    )
}
