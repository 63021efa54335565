//! Flags, environment and file: what goes before what, and what is said when it is wrong.

mod common;

use common::*;
use test_support::Calls;
use tokio::process::Command;

/// `mailrl send mail.eml` with nothing but a file to go by.
fn from_file(setup: &Setup) -> Command {
    let mut command = bare_command(setup.folder.path());
    setup.mail("mail.eml");
    command.args(["send", "mail.eml"]);
    command
}

fn whole_file(setup: &Setup) -> String {
    let (redis, graph) = (setup.redis.url(), setup.graph.base_url());
    format!(
        "[redis]\nurl = '{redis}'\n\
         [graph]\ntenant = 'tenant'\nclient_id = 'app'\nclient_secret_file = 'secret'\n\
         login_url = '{graph}'\ngraph_url = '{graph}'\n"
    )
}

#[tokio::test]
async fn a_file_is_enough_in_each_of_its_places() {
    let setup = Setup::new().await;
    let file = whole_file(&setup);
    std::fs::create_dir_all(setup.folder.path().join(".config/mailrl")).unwrap();
    std::fs::create_dir_all(setup.folder.path().join("xdg/mailrl")).unwrap();
    for place in [
        "mailrl.toml",
        ".config/mailrl/config.toml",
        "xdg/mailrl/config.toml",
        "other.toml",
    ] {
        let path = setup.file(place, &file);
        let secret = path.with_file_name("secret");
        std::fs::write(&secret, format!("{SECRET}\n")).unwrap();
        let mut command = from_file(&setup);
        if place.starts_with("xdg") {
            command.env("XDG_CONFIG_HOME", setup.folder.path().join("xdg"));
        }
        if place == "other.toml" {
            command.args(["--config", place]);
        }
        run(&mut command).await.ends_with(0).says("1 sent");
        std::fs::remove_file(path).unwrap();
        std::fs::remove_file(secret).unwrap();
    }
    assert_eq!(setup.redis.connection().used(KEY), (4, 4));
}

#[tokio::test]
async fn a_flag_goes_before_the_environment_and_that_before_the_file() {
    let setup = Setup::new().await;
    let nobody = nobody("redis");
    setup.file("secret", SECRET);
    setup.file(
        "mailrl.toml",
        whole_file(&setup).replace(&setup.redis.url(), &nobody),
    );
    run(&mut from_file(&setup))
        .await
        .ends_with(0)
        .says("without the brake");
    let run = |command: Command| async { run(&mut { command }).await };

    let mut command = from_file(&setup);
    command.env("MAILRL_REDIS", setup.redis.url());
    let braked = run(command).await;
    assert!(!braked.ends_with(0).output().contains("without the brake"));

    let mut command = from_file(&setup);
    command
        .env("MAILRL_REDIS", &nobody)
        .args(["--redis", &setup.redis.url()]);
    let braked = run(command).await;
    assert!(!braked.ends_with(0).output().contains("without the brake"));

    // An empty variable is one that is not set.
    let mut command = from_file(&setup);
    for name in [
        "REDIS",
        "CONFIG",
        "TENANT",
        "CLIENT_ID",
        "CLIENT_SECRET",
        "CLIENT_SECRET_FILE",
        "LOGIN_URL",
        "LOG",
    ] {
        command.env(format!("MAILRL_{name}"), "");
    }
    run(command).await.ends_with(0).says("without the brake");

    let mut command = from_file(&setup);
    command.env("MAILRL_LOGIN_URL", common::nobody("http"));
    run(command).await.ends_with(1).says("login server");

    let mut command = from_file(&setup);
    command
        .env("MAILRL_LOGIN_URL", common::nobody("http"))
        .args(["--login-url", &setup.graph.base_url()]);
    run(command).await.ends_with(0);

    let mut command = from_file(&setup);
    command.env("MAILRL_CLIENT_SECRET", "a-wrong-one");
    run(command).await.ends_with(1).says("no access token");
}

#[tokio::test]
async fn limits_of_the_file_hold_and_those_of_a_mailbox_go_before_them() {
    let setup = Setup::new().await;
    setup.file("secret", SECRET);
    let limits = "[limits]\nrate_limit_per_minute = 2\nconcurrent = 2\n\
                  [mailbox.'News@Example.com']\nrate_limit_per_minute = 1\n\
                  [mailbox.'big@example.com']\nrate_limit_recipients_per_day = 119\n";
    setup.file("mailrl.toml", whole_file(&setup) + limits);
    for name in ["a.eml", "b.eml", "c.eml"] {
        setup.mail(name);
    }
    let send = |arguments: &[&str]| {
        let mut command = bare_command(setup.folder.path());
        command
            .args(["send", "--json"])
            .args(arguments)
            .args(["a.eml", "b.eml", "c.eml"]);
        command
    };
    let results = |run: Run| -> Vec<String> {
        run.json()
            .iter()
            .map(|object| object["result"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(
        results(run(&mut send(&[])).await),
        ["sent", "deferred", "deferred"]
    );
    assert_eq!(
        results(run(&mut send(&["--from", "other@example.com"])).await),
        ["sent", "sent", "deferred"]
    );
    let mut command = bare_command(setup.folder.path());
    command
        .args(["send", "--from", "big@example.com"])
        .arg(samples().join("update-120-recipients.eml"));
    run(&mut command).await.ends_with(1).says("will never fit");
}

#[tokio::test]
async fn a_wrong_configuration_is_told_before_anything_is_sent() {
    let setup = Setup::new().await;
    setup.file("secret", SECRET);
    setup.file("empty", " \n");
    let whole = whole_file(&setup);
    let without = |key: &str| {
        let lines = whole.lines().filter(|line| !line.starts_with(key));
        lines.collect::<Vec<_>>().join("\n")
    };
    let redis_is = |url: &str| whole.replace(&setup.redis.url(), url);
    let cases = [
        (
            format!("{whole}tenat = 'x'\n"),
            vec!["mailrl.toml, line 9: unknown key `tenat`", "`client_secret_file`"],
        ),
        (
            format!("{whole}[limit]\n"),
            vec!["unknown key `limit`", "`limits`", "`mailbox`"],
        ),
        (redis_is("localhost:6379"), vec!["write it as redis://host:port"]),
        (
            redis_is("redis://u:hunter2@h:port"),
            vec!["write it as redis://host:port"],
        ),
        (
            without("tenant"),
            vec!["no tenant: set tenant in [graph]", "MAILRL_TENANT", "--tenant"],
        ),
        (
            without("client_id"),
            vec!["no client id: set client_id in [graph]", "--client-id"],
        ),
        (
            without("client_secret_file"),
            vec!["no client secret: set MAILRL_CLIENT_SECRET", "client_secret_file"],
        ),
        (
            whole.replace("'secret'", "'no-such-file'"),
            vec!["the client secret cannot be read from", "no-such-file"],
        ),
        (
            whole.replace("'secret'", "'empty'"),
            vec!["holds no client secret"],
        ),
        (
            whole.replace(
                &format!("graph_url = '{}'", setup.graph.base_url()),
                "graph_url = 'graph'",
            ),
            vec!["graph_url must be an http or https address"],
        ),
        (format!("{whole}timeout_s = 0\n"), vec!["a timeout of 0 s"]),
        (
            format!("{whole}timeout_s = 3600\n"),
            vec!["set timeout_s to 1 to 3590"],
        ),
        (
            format!("{whole}[limits]\nconcurrent = 0\n"),
            vec!["0 concurrent sends"],
        ),
        (
            format!("{whole}[limits]\nrate_limit_per_minute = -1\n"),
            vec!["line 10", "-1"],
        ),
        (
            format!("{whole}[mailbox.'a@b']\n[mailbox.'A@B']\n"),
            vec!["names the same mailbox"],
        ),
        (
            whole.replace("[graph]", "deadline_ms = 0\n[graph]"),
            vec!["a deadline of 0ns"],
        ),
        ("[redis\n".into(), vec!["mailrl.toml, line 1"]),
    ];
    for (file, texts) in cases {
        setup.file("mailrl.toml", &file);
        let run = run(&mut from_file(&setup)).await;
        assert!(run.stdout.is_empty(), "{run:?}");
        assert!(run.stderr.starts_with("mailrl: "), "{run:?}");
        assert!(!run.stderr.contains("hunter2"), "{run:?}");
        for text in texts {
            run.ends_with(2).says(text);
        }
    }
    std::fs::remove_file(setup.folder.path().join("mailrl.toml")).unwrap();
    let mut command = from_file(&setup);
    let run = run(command.args(["--config", "missing.toml"])).await;
    run.ends_with(2)
        .says("the configuration file missing.toml cannot be read");
    assert!(setup.arrived().is_empty());
}

#[tokio::test]
async fn wrong_usage_ends_with_2() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [
        &["send"][..],
        &["send", "--client-secret", "x", "a.eml"],
        &["send", "--log", "loud=very", "a.eml"],
        &["send", "--from", "nobody", "a.eml"],
        &["status"],
        &["sent", "a.eml"],
        &[],
    ] {
        let run = run(bare_command(folder.path()).args(arguments)).await;
        run.ends_with(2);
        assert!(run.stdout.is_empty() && !run.stderr.is_empty(), "{run:?}");
    }
}

/// Every run that fails in a way of its own, at the most talkative level.
#[tokio::test]
async fn no_secret_is_ever_shown() {
    let setup = Setup::new().await;
    setup.mail("mail.eml");
    let password = "pass-word-of-redis";
    let with_password = setup
        .redis
        .url()
        .replace("redis://", &format!("redis://user:{password}@"));
    let refused = nobody("redis").replace("redis://", &format!("redis://user:{password}@"));
    let malformed = format!("redis://user:{password}@host:port");
    setup.file("wrong.toml", format!("[redis]\nurl = '{with_password}\n"));
    setup.file("mistyped.toml", format!("redis = '{with_password}'\n"));
    let nobody = nobody("http");
    let cases: &[&[&str]] = &[
        &["send", "--redis", &setup.redis.url(), "mail.eml"],
        &["send", "--redis", &with_password, "mail.eml"],
        &["send", "--redis", &refused, "mail.eml"],
        &["send", "--redis", &malformed, "mail.eml"],
        &["send", "--login-url", &nobody, "mail.eml"],
        &["send", "--graph-url", &nobody, "mail.eml"],
        &["send", "--client-id", "other", "mail.eml"],
        &["send", "--config", "wrong.toml", "mail.eml"],
        &["send", "--config", "mistyped.toml", "mail.eml"],
        &["send", "missing.eml"],
        &["send", "--help"],
        &["status", "--redis", &with_password, MAILBOX],
        &["status", "--redis", &refused, MAILBOX],
        &["status", "--redis", &malformed, MAILBOX],
    ];
    for format in ["text", "json"] {
        for arguments in cases {
            let mut command = bare_command(setup.folder.path());
            setup.show_graph(&mut command);
            command
                .env("MAILRL_REDIS", &with_password)
                .env("MAILRL_LOG", "trace")
                .env("MAILRL_LOG_FORMAT", format)
                .env("RUST_BACKTRACE", "1")
                .args(*arguments);
            let run = run(&mut command).await;
            let output = run.output();
            assert!(!output.is_empty());
            // The last is how the simulator's access tokens begin.
            for secret in [SECRET, password, "sim."] {
                assert!(!output.contains(secret), "{arguments:?}: {output}");
            }
        }
    }
}
